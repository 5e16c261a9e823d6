"""The items of a request, made; and how transformers and vLLM want to be given them.

Takes a request; gives the arguments of an HF processor or vLLM's `multi_modal_data`, with equal contents. Not for texts.
"""

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat.parity.cases import Clip, Picture, Request, Video
from compat.zoo.clips import clip
from compat.zoo.pictures import picture

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FRAME_RATE = 2.0
"""Frames a second of every video."""

NESTED_VIDEOS = ("smolvlm",)
"""Families whose HF processor counts the videos of each text, so it wants a list a text."""


def sampling_rate(folder: Path) -> int:
    """What the feature extractor of the checkpoint in `folder` takes, in Hz; 16000 where it does not say."""
    extractor = json.loads((folder / "processor_config.json").read_text()).get("feature_extractor", {})
    return int(extractor.get("sampling_rate", 16_000))


def frames(video: Video) -> "npt.NDArray[np.uint8]":
    """[frames, height, width, 3]: one scene after another."""
    import numpy as np

    scenes = (picture(video.width, video.height, 1000 * video.seed + number) for number in range(video.frames))
    return np.stack([np.asarray(scene) for scene in scenes])


def metadata(video: Video) -> dict[str, Any]:
    """Metadata of a video all of whose frames were kept, in the names that transformers and vLLM share."""
    return {
        "fps": FRAME_RATE,
        "duration": video.frames / FRAME_RATE,
        "total_num_frames": video.frames,
        "frames_indices": list(range(video.frames)),
        "video_backend": "opencv",
    }


def processor_arguments(processor: Any, family: str, request: Request, rate: int) -> dict[str, Any]:
    """What to call the HF `processor` of `family` with, besides the text; clips at `rate` Hz."""
    arguments: dict[str, Any] = {}
    if pictures := [item for item in request.items if isinstance(item, Picture)]:
        arguments["images"] = [picture(item.width, item.height, item.seed) for item in pictures]
    if videos := [item for item in request.items if isinstance(item, Video)]:
        scenes, described = [frames(item) for item in videos], [metadata(item) for item in videos]
        nested = family in NESTED_VIDEOS
        arguments["videos"] = [scenes] if nested else scenes
        arguments["video_metadata"] = [described] if nested else described
        arguments["do_sample_frames"] = False
    if clips := [item for item in request.items if isinstance(item, Clip)]:
        # A few processors still have the argument's old name.
        old = "audios" in inspect.signature(type(processor).__call__).parameters
        arguments["audios" if old else "audio"] = [clip(item.seconds, item.seed, rate) for item in clips]
    return arguments


def multi_modal_data(request: Request, rate: int) -> Mapping[str, list[Any]]:
    """The same items as vLLM takes them, by modality; empty for a request without items."""
    data: dict[str, list[Any]] = {}
    for item in request.items:
        made: Any
        if isinstance(item, Picture):
            made = picture(item.width, item.height, item.seed)
        elif isinstance(item, Video):
            made = frames(item), metadata(item)
        else:
            made = clip(item.seconds, item.seed, rate), rate
        data.setdefault(item.modality, []).append(made)
    return data
