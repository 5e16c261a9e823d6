"""The small sizes that all families share, and configs of the text models and vision towers they have in common.

Takes a tokenizer; gives dictionaries of config arguments. Not for what belongs to one family (`compat.zoo.families`).
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.tokenizer import vocabulary_size

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

HIDDEN = 64
HEADS = 2
KV_HEADS = 1
HEAD = 32
"""The text model's head size; vLLM's CPU attention needs a multiple of 32."""
TEXT_LAYERS = 2

TOWER_HIDDEN = 32
TOWER_HEADS = 2
TOWER_LAYERS = 2

PATCH = 8
"""Pixels along a side of one patch."""
TILE = 32
"""Pixels along a side of one tile, for towers of a fixed size: 4 x 4 patches."""
LONGEST_EDGE = 96
"""Largest side of a picture, for towers of any size."""


def text_sizes(tokenizer: "PreTrainedTokenizerFast", **overrides: Any) -> dict[str, Any]:
    """Arguments that every decoder's config takes."""
    return {
        "vocab_size": vocabulary_size(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": TEXT_LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": 2048,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": False,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        **overrides,
    }


def text_sizes_with_head(tokenizer: "PreTrainedTokenizerFast", **overrides: Any) -> dict[str, Any]:
    """The same for decoders whose config names the head size (Llama, Mistral, Cohere)."""
    return text_sizes(tokenizer, head_dim=HEAD, **overrides)


def tower_sizes(**overrides: Any) -> dict[str, Any]:
    """Arguments of a ViT over tiles of a fixed size (CLIP, SigLIP, InternViT, Pixtral)."""
    return {
        "hidden_size": TOWER_HIDDEN,
        "intermediate_size": 2 * TOWER_HIDDEN,
        "num_hidden_layers": TOWER_LAYERS,
        "num_attention_heads": TOWER_HEADS,
        "image_size": TILE,
        "patch_size": PATCH,
        **overrides,
    }
