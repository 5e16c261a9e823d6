"""Every call of an HF processor this package makes goes through here, and is counted.

Not for deciding what to call it with.
"""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
    outputs are cast to the model's dtype, as vLLM does for every model. `defaults` are options of ours, which the request's
    override. Raises `ValueError` from vLLM with the processor's own exception as its cause.
    """
    global _count
    with _lock:
        _count += 1
    processor = info.get_hf_processor(**hf_kwargs)
    output: Mapping[str, Any] = info.ctx.call_hf_processor(processor, data, {**(defaults or {}), **hf_kwargs})
    return output
