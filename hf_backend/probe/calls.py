"""Every call of an HF processor this package makes goes through here, and is counted.

Not for deciding what to call it with.
"""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.modalities import WEAVING

if TYPE_CHECKING:
    from hf_backend.upstream import BaseProcessingInfo

_lock = threading.Lock()
_count = 0


def count() -> int:
    """How many times this process has called an HF processor, probes included."""
    return _count


def call(
    info: "BaseProcessingInfo",
    data: Mapping[str, object],
    hf_kwargs: Mapping[str, object],
    defaults: Mapping[str, object] | None = None,
) -> Mapping[str, Any]:
    """Call the HF processor of `info` on `data` (`text`, `images`, …).

    `hf_kwargs` are the request's `mm_processor_kwargs`; those given at start-up are merged in by vLLM, and floating point
    outputs are cast to the model's dtype, as vLLM does for every model, but for plain numbers: the seconds between a video's
    frames (Qwen2.5-VL) make positions, which bfloat16 moves. `defaults` are options of ours, which the request's override. Raises
    `ValueError` from vLLM with the processor's own exception as its cause.
    """
    global _count
    with _lock:
        _count += 1
    processor = _kept(info.get_hf_processor(**hf_kwargs))
    settled = {**_unwoven(info), **(defaults or {}), **hf_kwargs}
    output: Mapping[str, Any] = info.ctx.call_hf_processor(processor, data, settled)
    numbers = {
        name: value.cpu()
        for name, value in processor.output.items()
        if isinstance(value, torch.Tensor) and value.ndim < 2 and value.is_floating_point()
    }
    return {**output, **numbers}


def _unwoven(info: "BaseProcessingInfo") -> dict[str, object]:
    """Options given at start-up that no item can be processed alone with, set to what it can be."""
    given = info.ctx.get_merged_mm_kwargs({})
    return {option: False for option in WEAVING if given.get(option)}


class _Kept:
    """Calls a processor and keeps what it returned."""

    def __init__(self, processor: Any) -> None:
        self.__wrapped__ = processor  # whose signature vLLM reads
        self.output: Mapping[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
        self.output = self.__wrapped__(*args, **kwargs)
        return self.output


def _kept(processor: Any) -> _Kept:
    """Of the processor's name, by which vLLM says what failed."""
    made: type[_Kept] = type(type(processor).__name__, (_Kept,), {})
    return made(processor)
