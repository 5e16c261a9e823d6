"""A family's vLLM processor without an engine, the same on every vLLM of the range.

Takes a family of the zoo; gives an object that processes prompts as the API server would, with or without vLLM's processor
cache. Registers this package's classes first. Not for running models (`compat.parity`).
"""

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compat.zoo.store import checkpoint


@dataclass(frozen=True)
class FamilyProcessor:
    """One family's processor and the cache that goes with it."""

    model_config: Any
    processor: Any
    cache: Any
    """vLLM's processor cache, or None."""

    def __call__(
        self, prompt: str | Sequence[int], items: Mapping[str, Sequence[object]], **hf_kwargs: object
    ) -> dict[str, Any]:
        """Process one request; returns vLLM's `MultiModalInput` (ids, items' fields, placeholder ranges, hashes)."""
        mm_items = self.processor.info.parse_mm_data({name: list(values) for name, values in items.items() if values})
        arguments: dict[str, Any] = {"hf_processor_mm_kwargs": hf_kwargs}
        if "cache" in inspect.signature(type(self.processor).__call__).parameters:  # vLLM 0.31 and newer
            arguments["cache"] = self.cache
        prompt = prompt if isinstance(prompt, str) else list(prompt)
        return dict(self.processor(prompt, mm_items=mm_items, **arguments))


@functools.cache
def model_config_of(family: str) -> Any:
    """vLLM's config of the family's checkpoint, float32, served by the Transformers backend."""
    return _new_config(family, {})


def _new_config(family: str, start_up: Mapping[str, object]) -> Any:
    from vllm.config import ModelConfig

    from hf_backend.plugin import register

    register()
    return ModelConfig(
        model=str(checkpoint(family)),
        model_impl="transformers",
        dtype="float32",
        max_model_len=2048,
        limit_mm_per_prompt={"image": 8, "video": 4, "audio": 4},
        mm_processor_kwargs=dict(start_up) or None,
    )


def processor_of(family: str, *, cached: bool, start_up: Mapping[str, object] | None = None) -> FamilyProcessor:
    """A processor of `family` with a new, empty cache, or with none. `start_up`: the engine's own `mm_processor_kwargs`."""
    return processor_for(_new_config(family, start_up) if start_up else model_config_of(family), cached=cached)


def processor_for(model_config: Any, *, cached: bool) -> FamilyProcessor:
    """The same for a model that isn't the zoo's."""
    from vllm.multimodal import MULTIMODAL_REGISTRY
    from vllm.multimodal.cache import MultiModalProcessorOnlyCache

    cache = MultiModalProcessorOnlyCache(model_config) if cached else None
    create = MULTIMODAL_REGISTRY.create_processor
    at_creation = "cache" in inspect.signature(create).parameters  # vLLM 0.29 and 0.30
    processor = create(model_config, cache=cache) if at_creation else create(model_config)
    return FamilyProcessor(model_config, processor, cache)


def processor_with(family: str, processor_class: Any) -> Any:
    """vLLM's processor of `family`, without a cache, over another HF processor class, which is loaded from the same checkpoint
    and measured anew: what a process remembers of the checkpoint is of its own class."""
    from hf_backend.probe.profile import measure
    from hf_backend.processing.dummy import DummyInputsBuilder
    from hf_backend.processing.info import ProcessingInfo
    from hf_backend.processing.processor import Processor
    from hf_backend.records import ProcessorProfile

    class Info(ProcessingInfo):
        def get_hf_processor(self, **options: Any) -> Any:
            return self.ctx.get_hf_processor(processor_class, **options)

        @functools.cached_property
        def profile(self) -> ProcessorProfile:
            return measure(self)

    info = Info(processor_of(family, cached=False).processor.info.ctx)
    return Processor(info, DummyInputsBuilder(info))
