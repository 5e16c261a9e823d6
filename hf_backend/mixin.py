"""The mixin that makes vLLM's Transformers backend classes generic.

Takes what vLLM hands a multimodal model (batched fields, prompt ids, items); gives embeddings and positions by the rooms
`encoding` and `language`. Not a model by itself: `hf_backend.models` puts it in front of vLLM's classes, whose weight
loading, layer replacement and forward it keeps.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import torch

from hf_backend import modalities
from hf_backend.attention.layers import ItemAttentionMixin
from hf_backend.configs.parts import served_config
from hf_backend.encoding.compile import compile_encoder, compiles_encoders
from hf_backend.encoding.components import ComponentsMixin
from hf_backend.encoding.contiguous import make_inputs_contiguous
from hf_backend.encoding.encode import encode
from hf_backend.encoding.encoder import Encoder, refused_by_model
from hf_backend.encoding.items import EncoderItem, encoder_item, take_apart
from hf_backend.encoding.memory import budget
from hf_backend.encoding.mixtures import check_mixtures
from hf_backend.language.compiled import per_token_dims, tell_compiled_apart
from hf_backend.language.inputs import TextInputs
from hf_backend.language.lookup import measure_lookup
from hf_backend.language.positions import rope_positions
from hf_backend.language.view import language_view
from hf_backend.language.woven import woven_ids
from hf_backend.layers.chunked import use_chunks, with_chunks
from hf_backend.layers.kept import aside
from hf_backend.processing.info import ProcessingInfo
from hf_backend.records import EMBEDS, ProcessorProfile
from hf_backend.upstream import (
    MULTIMODAL_REGISTRY,
    MultiModalEmbeddings,
    MultiModalFeatureSpec,
    MultiModalMixin,
    current_platform,
)
from hf_backend.weights.head import head_rule
from hf_backend.weights.load import load
from hf_backend.weights.quantised import follow_checkpoint
from hf_backend.weights.skeleton import head_is_tied, output_embeddings_name, skeleton

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from vllm.config import ModelConfig, VllmConfig


class GenericMultiModalMixin(ItemAttentionMixin, ComponentsMixin):
    """Encoding, positions and the language-model view by measurement."""

    if TYPE_CHECKING:
        model: PreTrainedModel
        model_config: "ModelConfig"
        vllm_config: "VllmConfig"
        pp_group: Any
        config: Any
        text_config: Any
        logits_processor: Any
        quant_config: Any

    def __init__(self, *, vllm_config: "VllmConfig", prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        info = MULTIMODAL_REGISTRY.get_processing_info(vllm_config.model_config)
        assert isinstance(info, ProcessingInfo)
        self._info = info
        # Asked of the config it's a search through its parts, which a step has no need of.
        self._uses_mrope = vllm_config.model_config.uses_mrope
        self._profile: ProcessorProfile = info.profile
        if current_platform.is_cpu():
            make_inputs_contiguous(self.model, self.model.get_decoder())
        head = head_rule(self._skeleton)
        self.masked_tokens = head.masked
        if getattr(self, "logits_processor", None) is not None and head.capped is False:
            self.logits_processor.soft_cap = None
        self._encoders: dict[str, Encoder] = {}
        self._inputs: TextInputs | None = None
        self._language_view: list[torch.nn.Module] = []

    def embed_multimodal(self, **kwargs: object) -> MultiModalEmbeddings:
        """One tensor [embedding count, hidden size * (1 + levels)] an item, in request order."""
        device = next(self.model.parameters()).device
        if not self.pp_group.is_first_rank:
            # vLLM profiles encoders on every rank of a pipeline and then asks the first only, which alone has embeddings.
            width, dtype = self.model_config.hf_text_config.hidden_size, self.model_config.dtype
            groups = take_apart(kwargs, self._profile.modalities).values()
            return [
                torch.zeros(item.num_embeds, width, dtype=dtype, device=device) for items in groups for item in items
            ]
        if not self._encoders:
            self._measure(device)
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
                chunks=functools.partial(encoder.chunks, device=device),
                padded=encoder.padded,
            )
        return embeddings

    def _measure(self, device: torch.device) -> None:
        """What ids are looked up as, every modality's encoder, held to the model's forward on two small items, and what
        the text model takes beside embeddings."""
        embed_ids = [token for profile in self._profile.modalities.values() for token in profile.embed_ids]
        text_config = self.model_config.hf_text_config
        lookup = measure_lookup(self.model, max(text_config.vocab_size, 1, *(token + 1 for token in embed_ids)), device)
        limits = self.model_config.get_multimodal_config()
        budget(device)  # a setting that can't be read stops the start
        first: dict[str, EncoderItem] = {}
        for name, profile in self._profile.modalities.items():
            if limits.get_limit_per_prompt(name) > 0:
                probes = [encoder_item(item) for item in self._info.probe_items(name)]
                first[name] = probes[0]
                with refused_by_model(self.model, name):
                    self._encoders[name] = Encoder(
                        self.model, modalities.get(name), profile, probes, lookup, device, self._clips_of_many_lengths
                    )
                if compiles_encoders(self.vllm_config):
                    what = f"the {name} encoder of {type(self.model).__name__}"
                    compile_encoder(
                        self.model, self.model.get_decoder(), self._encoders[name].groups(probes, device), what
                    )
        if not self.encoder_only:
            max_tokens = self.vllm_config.scheduler_config.max_num_batched_tokens
            self._inputs = TextInputs(
                self.model.get_decoder(),
                lookup,
                max_tokens,
                text_config.hidden_size,
                woven_ids(self.model, self._profile, device),
            )
            self._inputs.take(self._encoders.values())
            self._inputs.check_pipeline(self.pp_group.world_size)
            tell_compiled_apart(self.vllm_config, self._inputs)
        check_mixtures(self.model, self._encoders, first, device)

    def _clips_of_many_lengths(self) -> list[EncoderItem]:
        return [encoder_item(item) for item in self._info.clips_of_many_lengths()]

    def eval(self) -> Self:
        """vLLM's loaders end with this, after weights are loaded and made ready and before anything is profiled: encoders
        are held to the model's forward here, so that one that doesn't fit stops the start. (On a CPU vLLM runs no encoder
        before the first request.) Only the first rank of a pipeline has the embeddings and runs encoders."""
        model: Self = super().eval()  # type: ignore[misc]
        if self._inputs is None and not self._encoders and self.pp_group.is_first_rank:
            with torch.inference_mode():
                self._measure(next(self.model.parameters()).device)
        return model

    def _maybe_apply_model_mapping(self) -> None:
        """vLLM renames what a quantisation config lists; ours is asked by the checkpoint's names, where its files can be read."""
        made = "model" in self.__dict__.get("_modules", {})
        if self.quant_config is not None and made and not follow_checkpoint(self, self._skeleton):
            super()._maybe_apply_model_mapping()  # type: ignore[misc]

    def recursive_replace(self) -> None:
        """vLLM's replacement of layers, but for those that have to stay."""
        with aside(self.model, self.model.get_decoder()):
            super().recursive_replace()  # type: ignore[misc]

    def _create_attention_instances(self, *args: Any) -> None:
        """vLLM's attention layers, with those that attend in chunks made so; none without a text model."""
        if self.encoder_only:
            return
        super()._create_attention_instances(*args)  # type: ignore[misc]
        use_chunks(self)

    def create_attention_instances(self) -> dict[int, Any]:
        """The same on vLLM 0.29."""
        if self.encoder_only:
            return {}
        return with_chunks(self, super().create_attention_instances())  # type: ignore[misc]

    def _patch_config(self) -> None:
        """vLLM's attention for the text model; also where the text config is a copy of the whole (`configs.rules`)."""
        super()._patch_config()  # type: ignore[misc]
        if type(self.text_config) is type(self.config):
            self.config._attn_implementation_internal = self.text_config._attn_implementation

    @functools.cached_property
    def _from_config_kwargs(self) -> dict[str, Any]:
        """What `AutoModel` builds the model from: for an Omni the part that generates text."""
        kwargs: dict[str, Any] = super()._from_config_kwargs  # type: ignore[misc]
        config = self.model_config
        remote = config.trust_remote_code
        part = served_config(self.config, config.architectures, config.model, trust_remote_code=remote)
        return kwargs | {"config": part}

    @functools.cached_property
    def _skeleton(self) -> Any:
        """transformers' model of this checkpoint on the meta device; not a child, since it isn't set as an attribute."""
        config = self.model_config
        return skeleton(self.config, config.architectures, config.model, trust_remote_code=config.trust_remote_code)

    def _get_tie_word_embeddings(self) -> bool:
        """Whether transformers ties the head; the outer and the inner config may disagree."""
        head = output_embeddings_name(self._skeleton)
        return head is not None and head_is_tied(self._skeleton, head)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Load a checkpoint in any layout that transformers loads; returns the names of what was loaded."""
        return load(self, self._skeleton, weights, super().load_weights)  # type: ignore[misc]

    def embed_input_ids(
        self,
        input_ids: torch.Tensor,
        multimodal_embeddings: MultiModalEmbeddings | None = None,
        *,
        is_multimodal: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Embeddings of a step's tokens, [tokens, hidden size], as the HF model's own forward makes them."""
        assert self._inputs is not None, "the weights are loaded before anything is embedded"
        return self._inputs.embed(input_ids, multimodal_embeddings, is_multimodal)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        **kwargs: object,
    ) -> Any:
        """A step of the text model itself: nothing of the HF model around it runs.

        vLLM gives no keyword arguments beside these (fields of items went to `embed_multimodal`).
        """
        self.hide_spans_from_causal_layers()
        extras: Mapping[str, torch.Tensor] = {}
        if self._inputs is not None:
            if inputs_embeds is None and input_ids is not None and not self._inputs.trivial:
                # Without items to serve vLLM hands on ids, and embeds nothing itself.
                inputs_embeds = self._inputs.embed(input_ids, None, None)
            extras = self._inputs.extras(positions.shape[-1])
        if self._uses_mrope:
            # [sections, tokens] to [sections, 1, tokens], as HF has them.
            positions = positions[:, None].contiguous()
        return self.get_language_model().forward(input_ids, positions, intermediate_tensors, inputs_embeds, **extras)

    def _decorate_for_torch_compile(self) -> None:
        """The text model's class only: encoders are compiled once they can be measured (`encoding.compile`)."""
        super(MultiModalMixin, self)._decorate_for_torch_compile()  # type: ignore[misc]

    def _decorate_cls_for_torch_compile(
        self, cls: type["PreTrainedModel"], dynamic_arg_dims: Any, enable_if: Any, is_encoder: bool
    ) -> None:
        """Per-token inputs are as long as the step, too."""
        if not is_encoder:
            dynamic_arg_dims = dynamic_arg_dims | per_token_dims(cls)
        super()._decorate_cls_for_torch_compile(cls, dynamic_arg_dims, enable_if, is_encoder)  # type: ignore[misc]

    def set_aux_hidden_state_layers(self, layers: tuple[int, ...]) -> None:
        """Eagle3's hidden states are those of the text model, which is what a step calls."""
        self.get_language_model().set_aux_hidden_state_layers(layers)

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
