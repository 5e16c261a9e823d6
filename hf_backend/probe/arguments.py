"""From items as vLLM parses them to the arguments of an HF processor.

Takes a modality and its items; gives the data arguments, and options that are ours. Not for the request's own options.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hf_backend.modalities import Modality

VideoItem = tuple[object, Mapping[str, Any]]
"""Frames and metadata, as `hf_backend.processing.parser` keeps every video; the metadata may be empty."""


def arguments(modality: Modality, items: Sequence[Any]) -> tuple[dict[str, object], dict[str, object]]:
    """Data arguments and options with which to call a processor on `items`."""
    data: dict[str, object] = {modality.processor_argument: list(items)}
    options: dict[str, object] = {}
    if modality.name == "video":
        data, options = _video_arguments(modality, items)
    return {name: [values] if modality.nested else values for name, values in data.items()}, options


def _video_arguments(modality: Modality, items: Sequence[VideoItem]) -> tuple[dict[str, object], dict[str, object]]:
    """Videos with their metadata, whatever the processor's default for sampling is.

    vLLM's loader has sampled the frames already, so they are taken as they are unless the metadata says otherwise; frame
    rate and indices still reach the processor, which makes timestamps of them (Qwen2.5-VL, VideoLLaMA3).
    """
    frames = [item[0] for item in items]
    metadata = [{name: value for name, value in item[1].items() if name != "do_sample_frames"} for item in items]
    sample = {bool(item[1].get("do_sample_frames", False)) for item in items}
    data: dict[str, object] = {modality.processor_argument: frames}
    if all(metadata):
        data["video_metadata"] = metadata
    return data, {"do_sample_frames": sample.pop() if len(sample) == 1 else False}
