"""The parts of an HF processor: which one handles a modality, and what it wants to be told.

Takes a processor; gives its sub-processor of a modality and the sampling rate of its audio part. Nothing is called.
"""

import inspect
from typing import Any

from hf_backend import modalities
from hf_backend.modalities import Modality


def sub_processor(processor: Any, modality: Modality) -> Any:
    """The part of a processor that handles `modality`, or None."""
    parts = (getattr(processor, name, None) for name in modality.sub_processors)
    return next((part for part in parts if part is not None), None)


def sampling_rate(processor: Any) -> float:
    """What the audio part of a processor wants its clips in, in Hz; 16,000 where it doesn't say."""
    return float(getattr(sub_processor(processor, modalities.AUDIO), "sampling_rate", None) or 16_000)


def rate_options(processor: Any, modality: Modality) -> dict[str, object]:
    """`sampling_rate` where the audio part takes it: it compares it with its own and warns of every clip without
    (Whisper's extractor in Qwen2-Audio). vLLM's parser has resampled the clip to that rate."""
    if modality.name != "audio":
        return {}
    part = sub_processor(processor, modality)
    if part is None or "sampling_rate" not in inspect.signature(part.__call__).parameters:
        return {}
    rate = getattr(part, "sampling_rate", None)
    return {} if rate is None else {"sampling_rate": int(rate)}
