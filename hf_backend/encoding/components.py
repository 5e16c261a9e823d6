"""The part of the mixin that leaves out what isn't served: towers of modalities that are off, or the text model.

Takes what vLLM is told to serve; says which classes that leaves out, and lets encoders run without their text model
(`hf_backend.encoding.absent`). vLLM does the leaving out. Not for which weights are loaded (`hf_backend.weights.names`).
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hf_backend.encoding.absent import LANGUAGE_MODEL, let_tables_be_zeros
from hf_backend.encoding.towers import towers
from hf_backend.upstream import MULTIMODAL_REGISTRY, StageMissingLayer

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from vllm.config import ModelConfig, VllmConfig


class ComponentsMixin:
    """What is left out of a model."""

    if TYPE_CHECKING:
        model_config: "ModelConfig"
        device_config: Any
        _pre_trained_model_classes: Any
        _mark_language_model: Any

    def __init__(self, *, vllm_config: "VllmConfig", prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        if self.encoder_only:
            model: Any = self
            let_tables_be_zeros(model, self.model_config.dtype, self.device_config.device)
            if hasattr(self, "lm_head"):
                self.lm_head = StageMissingLayer(LANGUAGE_MODEL)

    @functools.cached_property
    def encoder_only(self) -> bool:
        """Whether the text model is left out."""
        return bool(self.model_config.get_multimodal_config().mm_encoder_only)

    def _find_encoder_classes(self, model: "PreTrainedModel") -> dict[str, Any]:
        """By modality, what vLLM leaves out where the modality isn't served; vLLM asks transformers, which doesn't know all."""
        found: dict[str, Any] = super()._find_encoder_classes(model)  # type: ignore[misc]
        served = MULTIMODAL_REGISTRY.get_processing_info(self.model_config).supported_mm_limits
        return found or (dict.fromkeys(served, classes) if len(served) == 1 and (classes := towers(model)) else {})

    @contextlib.contextmanager
    def _mark_model_components(self, vllm_config: "VllmConfig") -> Iterator[None]:
        """The text model can be left out of a model without towers, too (Gemma 4 unified)."""
        classes = self._pre_trained_model_classes
        with contextlib.ExitStack() as stack:
            if not classes.encoders:
                stack.enter_context(self._mark_language_model(vllm_config, targets=classes.decoder))
            stack.enter_context(super()._mark_model_components(vllm_config))  # type: ignore[misc]
            yield
