"""The mixin that makes vLLM's Transformers backend classes generic.

Takes what vLLM hands a multimodal model (batched fields, prompt ids, items); gives embeddings and positions by the rooms
`encoding` and `language`. Not a model by itself: `hf_backend.models` puts it in front of vLLM's classes, whose weight
loading, layer replacement and forward it keeps.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import torch

from hf_backend import modalities
from hf_backend.attention.layers import ItemAttentionMixin
from hf_backend.encoding.contiguous import make_inputs_contiguous
from hf_backend.encoding.encode import encode
from hf_backend.encoding.encoder import Encoder
from hf_backend.encoding.items import encoder_item, take_apart
from hf_backend.language.positions import rope_positions
from hf_backend.language.soft_cap import caps_logits
from hf_backend.language.view import language_view
from hf_backend.processing.info import ProcessingInfo
from hf_backend.records import EMBEDS, ProcessorProfile
from hf_backend.upstream import (
    MULTIMODAL_REGISTRY,
    MultiModalEmbeddings,
    MultiModalFeatureSpec,
    current_platform,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from vllm.config import ModelConfig, VllmConfig


class GenericMultiModalMixin(ItemAttentionMixin):
    """Encoding, positions and the language-model view by measurement."""

    if TYPE_CHECKING:
        model: PreTrainedModel
        model_config: "ModelConfig"
        pp_group: Any
        config: Any
        logits_processor: Any

    def __init__(self, *, vllm_config: "VllmConfig", prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        info = MULTIMODAL_REGISTRY.get_processing_info(vllm_config.model_config)
        assert isinstance(info, ProcessingInfo)
        self._info = info
        self._profile: ProcessorProfile = info.profile
        if current_platform.is_cpu():
            make_inputs_contiguous(self.model, self.model.get_decoder())
        if getattr(self, "logits_processor", None) is not None and not caps_logits(self.config):
            self.logits_processor.soft_cap = None
        self._encoders: dict[str, Encoder] = {}
        self._language_view: list[torch.nn.Module] = []

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """One tensor [embedding count, hidden size] an item, in request order."""
        device = next(self.model.parameters()).device
        if not self._encoders:
            self._make_encoders(device)
        embeddings: list[torch.Tensor] = []
        for modality, items in take_apart(kwargs, self._profile.modalities).items():
            # vLLM batches items of equal fields, so that these are all embeddings or all for the encoder.
            if all(EMBEDS in item.fields for item in items):
                given = [torch.as_tensor(item.fields[EMBEDS]) for item in items]
                embeddings += [each.to(device, self.model_config.dtype) for each in given]
                continue
            encoder = self._encoders[modality]
            embeddings += encode(
                items,
                self._profile.modalities[modality].layouts,
                encoder.joinable,
                run=functools.partial(encoder, device=device),
                model_name=type(self.model).__name__,
            )
        return embeddings

    def _make_encoders(self, device: torch.device) -> None:
        """Every modality's encoder, held to the model's forward on two small items."""
        limits = self.model_config.get_multimodal_config()
        for name, profile in self._profile.modalities.items():
            if limits.get_limit_per_prompt(name) > 0:
                probes = [encoder_item(item) for item in self._info.probe_items(name)]
                self._encoders[name] = Encoder(self.model, modalities.get(name), profile, probes, device)

    def eval(self) -> Self:
        """vLLM's loaders end with this, after weights are loaded and made ready and before anything is profiled: encoders
        are held to the model's forward here, so that one that doesn't fit stops the start. (On a CPU vLLM runs no encoder
        before the first request.) Only the first rank of a pipeline has the embeddings and runs encoders."""
        model: Self = super().eval()  # type: ignore[misc]
        if not self._encoders and self.pp_group.is_first_rank:
            with torch.inference_mode():
                self._make_encoders(next(self.model.parameters()).device)
        return model

    def get_mrope_input_positions(
        self, input_tokens: Sequence[int], mm_features: Sequence[MultiModalFeatureSpec]
    ) -> tuple[torch.Tensor, int]:
        """M-RoPE positions [sections, tokens] of one prompt, and the offset for the tokens after it."""
        get_rope_index: Any = self.model.get_rope_index
        layouts = {name: profile.layouts for name, profile in self._profile.modalities.items()}
        return rope_positions(get_rope_index, input_tokens, mm_features, layouts)

    def get_language_model(self) -> torch.nn.Module:
        """The text-only face of this model, made once: vLLM asks for it in every step."""
        if not self._language_view:
            # In a list, so that nn.Module doesn't take the face for a child and walk in circles.
            self._language_view.append(language_view(self))
        return self._language_view[0]
