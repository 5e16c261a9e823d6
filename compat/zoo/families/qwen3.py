"""Qwen3-VL, dense and with experts: features of several tower layers are added to as many text layers (deepstack).

Gives `SPECS`. A video is expanded frame by frame, each with its time as text before it.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.qwen import END, IMAGE, START, UNIT, VIDEO
from compat.zoo.sizes import (
    HIDDEN,
    LONGEST_EDGE,
    PATCH,
    TILE,
    TOWER_HEADS,
    TOWER_HIDDEN,
    text_sizes_with_head,
)
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LAYERS = 4
"""Layers of the text model and of the tower: one more than there are levels of deepstack."""
LEVELS = 3


def _text(tokenizer: "PreTrainedTokenizerFast", **overrides: Any) -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    return text_sizes_with_head(tokenizer, rope_parameters=rope, num_hidden_layers=LAYERS, **overrides)


def _config(tokenizer: "PreTrainedTokenizerFast", text: dict[str, Any]) -> dict[str, Any]:
    return {
        "text_config": text,
        "vision_config": {
            "depth": LAYERS,
            "hidden_size": TOWER_HIDDEN,
            "num_heads": TOWER_HEADS,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "out_hidden_size": HIDDEN,
            "patch_size": PATCH,
            "num_position_embeddings": (TILE // PATCH) ** 2,
            "deepstack_visual_indexes": list(range(LEVELS)),
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "vision_start_token_id": token_id(tokenizer, START),
        "vision_end_token_id": token_id(tokenizer, END),
        "tie_word_embeddings": False,
    }


def _qwen3_vl(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return _config(tokenizer, _text(tokenizer))


def _qwen3_vl_moe(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": HIDDEN, "decoder_sparse_step": 1}
    return _config(tokenizer, _text(tokenizer, mlp_only_layers=[], **experts))


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Qwen2VLImageProcessor(
            patch_size=PATCH, size={"shortest_edge": 4 * UNIT**2, "longest_edge": LONGEST_EDGE**2}
        ),
        # Counts the pixels of all frames together.
        "video_processor": transformers.Qwen3VLVideoProcessor(
            patch_size=PATCH, size={"shortest_edge": 8 * UNIT**2, "longest_edge": 2 * LONGEST_EDGE**2}
        ),
        "tokenizer": tokenizer,
    }


_SPECIAL_TOKENS = ("<|im_start|>", "<|im_end|>", START, END, IMAGE, VIDEO)
_PLACEHOLDERS = {"image": f"{START}{IMAGE}{END}", "video": f"{START}{VIDEO}{END}"}

SPECS = (
    Spec(
        name="qwen3_vl",
        placeholders=_PLACEHOLDERS,
        special_tokens=_SPECIAL_TOKENS,
        config_class="Qwen3VLConfig",
        config=_qwen3_vl,
        processor_class="Qwen3VLProcessor",
        processor=_processor,
    ),
    Spec(
        name="qwen3_vl_moe",
        placeholders=_PLACEHOLDERS,
        special_tokens=_SPECIAL_TOKENS,
        config_class="Qwen3VLMoeConfig",
        config=_qwen3_vl_moe,
        processor_class="Qwen3VLProcessor",
        processor=_processor,
    ),
)
