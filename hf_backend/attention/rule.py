"""Which tokens of a prompt see which: the HF model's own masks, read as a rule.

Takes a model's config and what its processor says of one prompt with items (token types, and where embeddings go); gives a
rule for each type of layer. The masks come from the model class's `create_masks_for_generate`, which transformers calls
with the same arguments while it generates; no weights are needed, so that the rule is known before a model exists. Not for
what is done about it (`hf_backend.attention.spans`).
"""

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from hf_backend.errors import UnsupportedModelError

FULL, SLIDING = "full_attention", "sliding_attention"
"""Names of layer types in `layer_types` of a text config; a config without the list has full layers only."""

Span = tuple[int, int]
"""First and last position of a run of tokens."""

WINDOW = 2
"""The window that masks are made with: shorter than any item with something to see both ways, so that a rule that stops at
the window can be told from one that doesn't."""


class Scope(Enum):
    """Which tokens see one another whatever their order."""

    ITEM = "item"
    """The tokens of one run of embeddings (Gemma 3, Gemma 4)."""
    PROMPT = "prompt"
    """All tokens of a prompt with items, text too; generated ones don't (PaliGemma)."""


@dataclass(frozen=True, slots=True)
class LayerRule:
    """What one type of layer adds to causal attention."""

    scope: Scope
    clamped: bool
    """Whether the sliding window bounds what is seen inside a span too. True for layers without a window."""


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """The rules of a model's layers; those missing are plain causal."""

    by_type: Mapping[str, LayerRule]
    layer_types: tuple[str, ...]
    """The type of each layer; empty where all are full."""

    def of_layer(self, index: int) -> LayerRule | None:
        """The rule of layer `index`, None for plain causal."""
        return self.by_type.get(self.layer_types[index] if self.layer_types else FULL)

    @property
    def scope(self) -> Scope:
        """The largest scope of any layer."""
        scopes = {rule.scope for rule in self.by_type.values()}
        return Scope.PROMPT if Scope.PROMPT in scopes else Scope.ITEM


def dense_mask(length: int, spans: Sequence[Span], window: int | None, clamped: bool) -> torch.Tensor:
    """What causal attention over `length` tokens with attention both ways inside `spans` lets see, bool [query, key].

    `window` counts the keys up to a query's own, itself included; None for all. `clamped` as in `LayerRule`.
    """
    query, key = torch.arange(length)[:, None], torch.arange(length)[None]
    recent = key > query - window if window is not None else torch.ones(length, length, dtype=torch.bool)
    both_ways = torch.zeros(length, length, dtype=torch.bool)
    for first, last in spans:
        both_ways |= (query >= first) & (query <= last) & (key >= first) & (key <= last)
    if clamped:
        return recent & ((key <= query) | both_ways)
    return (recent & (key <= query)) | both_ways


def runs(is_embed: torch.Tensor) -> list[Span]:
    """The runs of true values in `is_embed`, bool [tokens]."""
    edges = torch.diff(is_embed.int(), prepend=torch.zeros(1, dtype=torch.int), append=torch.zeros(1, dtype=torch.int))
    starts, ends = (edges == 1).nonzero().flatten(), (edges == -1).nonzero().flatten() - 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def measure_rule(
    model_class: type | None, config: Any, output: Mapping[str, Any], is_embed: torch.Tensor
) -> AttentionRule | None:
    """The rule of `model_class`, None where it is plain causal or has no masks that follow items.

    `output` is what the processor returned for a prompt with items, `is_embed`, bool [tokens], where embeddings go in it.
    Raises `UnsupportedModelError` for masks that no rule of this package describes.
    """
    create_masks = getattr(model_class, "create_masks_for_generate", None)
    if create_masks is None:
        return None
    # The name of the token types differs (Gemma 3 and PaliGemma: `token_type_ids`, Gemma 4: `mm_token_type_ids`), and so
    # does what their values mean: both are the processor's and the model's own business.
    parameters = inspect.signature(create_masks).parameters
    names = [name for name in ("mm_token_type_ids", "token_type_ids") if name in parameters and name in output]
    if not names:
        return None
    masks = _masks(create_masks, config, {name: torch.as_tensor(output[name]).reshape(1, -1) for name in names})
    found: dict[str, LayerRule] = {}
    for layer_type, mask in masks.items():
        window = WINDOW if layer_type == SLIDING else None
        if (rule := _read(mask, runs(is_embed), window)) is not None:
            found[layer_type] = rule
        elif not torch.equal(mask, dense_mask(len(mask), (), window, clamped=True)):
            raise UnsupportedModelError(
                getattr(model_class, "__name__", str(model_class)),
                found=f"that in layers of type {layer_type} tokens see others by no rule known here",
                expected="causal attention, with attention both ways inside items or the prompt",
                do="Answers to prompts with items would be wrong. Serve the model with text only: --language-model-only.",
            )
    layer_types = tuple(getattr(config.get_text_config(), "layer_types", None) or ())
    return AttentionRule(found, layer_types) if found else None


def _masks(create_masks: Any, config: Any, token_types: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What each type of layer lets see, bool [query, key]."""
    config = copy.deepcopy(config)
    text_config = config.get_text_config()
    # Only eager attention always gets its mask written out; vLLM's own implementation has none.
    text_config._attn_implementation = "eager"
    if getattr(text_config, "sliding_window", None) is not None:
        text_config.sliding_window = WINDOW
    length = next(iter(token_types.values())).shape[1]
    # transformers 5.24 calls it so, and warns of the old name; the latter can go with 5.23.
    cache = "cache" if "cache" in inspect.signature(create_masks).parameters else "past_key_values"
    masks = create_masks(
        config=config,
        inputs_embeds=torch.zeros(1, length, 1),
        attention_mask=torch.ones(1, length, dtype=torch.long),
        position_ids=torch.arange(length)[None],
        **{cache: None},
        **token_types,
    )
    by_type = masks if isinstance(masks, dict) else {FULL: masks}
    return {name: mask[0, 0] == 0 for name, mask in by_type.items() if isinstance(mask, torch.Tensor)}


def _read(mask: torch.Tensor, item_spans: Sequence[Span], window: int | None) -> LayerRule | None:
    """The rule that makes `mask`, None where none does."""
    for scope, spans in ((Scope.ITEM, item_spans), (Scope.PROMPT, [(0, len(mask) - 1)])):
        for clamped in (True, False):
            if torch.equal(mask, dense_mask(len(mask), spans, window, clamped)):
                return LayerRule(scope, clamped)
    return None
