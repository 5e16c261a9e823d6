"""DeepSeek-VL and Janus: SigLIP over one padded square, as many embeddings for every picture; the hybrid adds SAM.

Gives `SPECS`. Janus can also draw; its tokenizer of pictures (a VQ-VAE) is part of the checkpoint and never runs here.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import (
    HIDDEN,
    PATCH,
    TILE,
    TOWER_HEADS,
    TOWER_HIDDEN,
    TOWER_LAYERS,
    text_sizes_with_head,
    tower_sizes,
)
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, BEGIN, END = "<image_placeholder>", "<begin_of_image>", "<end_of_image>"
NUM_TOKENS = (TILE // PATCH) ** 2
SIZE = {"height": TILE, "width": TILE}
SMALLEST = 4
"""Pixels that the short side of a picture keeps at least."""


def _deepseek_vl(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "siglip_vision_model", "vision_use_head": False, **tower_sizes()},
        "image_token_id": token_id(tokenizer, IMAGE),
        "tie_word_embeddings": False,
    }


def _deepseek_vl_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.DeepseekVLImageProcessor(size=SIZE, min_size=SMALLEST),
        "tokenizer": tokenizer,
        "num_image_tokens": NUM_TOKENS,
    }


def _deepseek_vl_hybrid(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        **_deepseek_vl(tokenizer),
        "high_res_vision_config": {
            "hidden_size": TOWER_HIDDEN,
            "output_channels": 16,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "image_size": 2 * TILE,
            "patch_size": PATCH,
            # Windows smaller than the grid of 8 x 8 patches, and one layer that sees all of it.
            "window_size": 3,
            "global_attn_indexes": [1],
            "mlp_ratio": 2.0,
        },
    }


def _deepseek_vl_hybrid_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.DeepseekVLHybridImageProcessor(
            size=SIZE, high_res_size={"height": 2 * TILE, "width": 2 * TILE}, min_size=SMALLEST
        ),
        "tokenizer": tokenizer,
        "num_image_tokens": NUM_TOKENS,
    }


def _janus(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "vision_config": {
            "hidden_size": TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "mlp_ratio": 2.0,
            "image_size": TILE,
            "patch_size": PATCH,
            "projection_dim": HIDDEN,
            "num_image_tokens": NUM_TOKENS,
        },
        "vq_config": {
            "num_embeddings": 16,
            "latent_channels": 32,
            # 32 groups are normalised; one channel each.
            "base_channels": 32,
            "channel_multiplier": [1, 1],
            "num_res_blocks": 1,
            "projection_dim": HIDDEN,
            "image_token_embed_dim": HIDDEN,
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "tie_word_embeddings": False,
    }


def _janus_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.JanusImageProcessor(size=SIZE, min_size=SMALLEST),
        "tokenizer": tokenizer,
        "num_image_tokens": NUM_TOKENS,
    }


DEEPSEEK_VL = Spec(
    name="deepseek_vl",
    placeholders={"image": IMAGE},
    special_tokens=("<|User|>", "<|Assistant|>", IMAGE),
    named_tokens={"image_token": IMAGE},
    config_class="DeepseekVLConfig",
    config=_deepseek_vl,
    processor_class="DeepseekVLProcessor",
    processor=_deepseek_vl_processor,
    turns=Turns(user="User: ", user_end="\n\n", assistant="Assistant: ", assistant_end="\n\n"),
    bos="<|begin_of_sentence|>",
)

SPECS = (
    DEEPSEEK_VL,
    replace(
        DEEPSEEK_VL,
        name="deepseek_vl_hybrid",
        config_class="DeepseekVLHybridConfig",
        config=_deepseek_vl_hybrid,
        processor_class="DeepseekVLHybridProcessor",
        processor=_deepseek_vl_hybrid_processor,
    ),
    Spec(
        name="janus",
        placeholders={"image": IMAGE},
        special_tokens=("<|User|>", "<|Assistant|>", BEGIN, END, IMAGE),
        named_tokens={"image_token": IMAGE, "boi_token": BEGIN, "eoi_token": END},
        config_class="JanusConfig",
        config=_janus,
        processor_class="JanusProcessor",
        processor=_janus_processor,
        turns=Turns(user="<|User|>: ", user_end="\n\n", assistant="<|Assistant|>: ", assistant_end="\n\n"),
        bos="<|begin_of_sentence|>",
    ),
)
