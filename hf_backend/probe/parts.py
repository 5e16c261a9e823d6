"""The parts of an HF processor and of a config: which one handles a modality, what it wants to be told, and which one answers.

Takes a processor or a config; gives the processor's part of a modality and the sampling rate of its audio part, or the config's
part that generates text. Nothing is called.
"""

import inspect
from typing import Any

import transformers

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


def text_part(config: Any) -> Any:
    """The config itself, or that of the part which holds the text config, where the config isn't the one to hold it (an Omni's
    thinker)."""
    text = config.get_text_config()
    if text is config or any(value is text for value in vars(config).values()):
        return config
    for value in vars(config).values():
        if isinstance(value, transformers.PreTrainedConfig) and value.get_text_config() is text:
            return text_part(value)
    return config
