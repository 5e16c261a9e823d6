"""Attention layers that follow a model's rule.

Takes the rule that `hf_backend.attention.settings` says is needed; gives the layer class for vLLM's Transformers backend to
make, and the part of the mixin that has it made. On a CPU a layer with a rule gets this package's backend. Elsewhere vLLM's own
honours spans, for all layers that it serves: those that are plain causal are then shown none.
"""

import copy
import functools
from typing import TYPE_CHECKING, Any

from hf_backend.attention.rule import AttentionRule, Scope
from hf_backend.attention.settings import needed_rule
from hf_backend.upstream import current_platform, init_logger
from hf_backend.upstream.attention import (
    Attention,
    extract_layer_index,
    get_forward_context,
    is_forward_context_available,
)

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig

logger = init_logger("vllm.hf_backend")

SPAN_FIELDS = ("mm_prefix_range", "mm_prefix_range_tensor", "mm_prefix_query_range_tensor")
"""What metadata of vLLM's other backends call a step's spans."""


class ItemAttention(Attention):
    """vLLM's attention layer with the rule of its place in the model."""

    def __init__(self, *args: Any, rule: AttentionRule, prefix: str = "", **kwargs: Any) -> None:
        own = rule.of_layer(extract_layer_index(prefix))
        if own is not None and current_platform.is_cpu():
            from hf_backend.attention.cpu import SpanBackend

            kwargs["attn_backend"] = SpanBackend
        super().__init__(*args, prefix=prefix, mm_prefix_clamp_sliding_window=own is not None and own.clamped, **kwargs)
        self.item_rule = own


class ItemAttentionMixin:
    """Has a model's attention layers made with its rule, and keeps spans from the plain causal ones."""

    if TYPE_CHECKING:
        model_config: "ModelConfig"

    mm_prefix_clamp_sliding_window = True
    """That vLLM shouldn't leave out spans longer than the window: a rule says what becomes of them."""

    def __init__(self, *, vllm_config: "VllmConfig", prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        layers = vllm_config.compilation_config.static_forward_context
        self._causal_layers = tuple(
            name for name, layer in layers.items() if isinstance(layer, ItemAttention) and layer.item_rule is None
        )
        self._warn_where_the_rule_is_ignored(layers)

    def _get_attn_cls(self) -> Any:
        """What makes a layer: vLLM's class, or ours with the rule, read once for all layers."""
        chosen = super()._get_attn_cls()  # type: ignore[misc]
        if chosen is not Attention or (rule := needed_rule(self.model_config)) is None:
            return chosen
        return functools.partial(ItemAttention, rule=rule)

    def hide_spans_from_causal_layers(self) -> None:
        """Before each step: take away what plain causal layers aren't to see. On a CPU each layer's backend knows its rule."""
        if self._causal_layers and not current_platform.is_cpu() and is_forward_context_available():
            hide_spans(get_forward_context().attn_metadata, self._causal_layers)

    def _warn_where_the_rule_is_ignored(self, layers: "dict[str, Any]") -> None:
        """vLLM looks for a backend that honours spans where it has a choice; on the rest nothing says that it doesn't."""
        ours = [layer for layer in layers.values() if isinstance(layer, ItemAttention) and layer.item_rule is not None]
        if self.model_config.is_mm_prefix_lm and not ours and current_platform.is_cpu():
            logger.warning(
                "vLLM says that %s attends to items in both directions, the transformers class doesn't say how: answers to"
                " prompts with items may be WRONG on this CPU.",
                self.model_config.architectures,
            )
        for layer in ours:
            backend = layer.attn_backend
            if not backend.supports_mm_prefix():
                logger.warning(
                    "%s attends to items in both directions, and vLLM's attention backend %s ignores that: answers to prompts"
                    " with items will be WRONG. Text prompts are right. Choose another with --attention-backend.",
                    self.model_config.architectures,
                    backend.get_name(),
                )
                return
            if layer.item_rule is not None and layer.item_rule.scope is Scope.PROMPT and not current_platform.is_cpu():
                logger.warning(
                    "%s attends to all of a prompt with items in both directions, and vLLM's attention backend %s to the"
                    " items only: answers to prompts with items will be WRONG here. They are right on a CPU.",
                    self.model_config.architectures,
                    backend.get_name(),
                )
                return


def hide_spans(attn_metadata: Any, layer_names: "tuple[str, ...]") -> None:
    """Give the layers metadata without spans; in place in `attn_metadata`, layer name to metadata, a micro-batch each where
    vLLM made a list. Layers may share an object with others that keep theirs, so it is copied."""
    for by_layer in attn_metadata if isinstance(attn_metadata, list) else [attn_metadata]:
        for name in layer_names if isinstance(by_layer, dict) else ():
            metadata = by_layer.get(name)
            present = [field for field in SPAN_FIELDS if getattr(metadata, field, None) is not None]
            if present:
                by_layer[name] = copy.copy(metadata)
                for field in present:
                    setattr(by_layer[name], field, None)
