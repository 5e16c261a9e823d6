"""Qwen3.5 and MiniCPM-V 4.6, which is built on its text model: linear attention and full attention in turn.

Gives `SPECS`. For Qwen3-VL see `compat.zoo.families.qwen3`.
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
    TOWER_LAYERS,
    text_sizes_with_head,
    tower_sizes,
)
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SLICE_UNIT = 4 * PATCH
"""Pixels along a side of one embedding of MiniCPM-V: patches are merged 2 x 2 twice."""
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""transformers' own for Qwen3.5; it loads no other."""
MINICPM_MARKERS = {
    "image_start_token": "<image>",
    "image_end_token": "</image>",
    "slice_start_token": "<slice>",
    "slice_end_token": "</slice>",
    "image_id_start_token": "<image_id>",
    "image_id_end_token": "</image_id>",
}


def _text(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [4, 2, 2],
        "mrope_interleaved": True,
    }
    return {
        "model_type": "qwen3_5_text",
        **text_sizes_with_head(tokenizer, rope_parameters=rope),
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
    }


def _qwen3_5(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": _text(tokenizer),
        "vision_config": {
            "depth": TOWER_LAYERS,
            "hidden_size": TOWER_HIDDEN,
            "num_heads": TOWER_HEADS,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "out_hidden_size": HIDDEN,
            "patch_size": PATCH,
            "num_position_embeddings": (TILE // PATCH) ** 2,
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "vision_start_token_id": token_id(tokenizer, START),
        "vision_end_token_id": token_id(tokenizer, END),
        "tie_word_embeddings": False,
    }


def _qwen3_5_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
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


def _minicpmv4_6(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": _text(tokenizer),
        "vision_config": tower_sizes(image_size=2 * SLICE_UNIT),
        # Patches are merged for the first time before this layer of the tower.
        "insert_layer_id": 1,
        "image_size": 2 * SLICE_UNIT,
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "tie_word_embeddings": False,
    }


def _minicpmv4_6_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    sizes = {"scale_resolution": 2 * SLICE_UNIT, "patch_size": PATCH}
    return {
        "image_processor": transformers.MiniCPMV4_6ImageProcessor(max_slice_nums=4, **sizes),
        "video_processor": transformers.MiniCPMV4_6VideoProcessor(max_slice_nums=1, **sizes),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="qwen3_5",
        placeholders={"image": f"{START}{IMAGE}{END}", "video": f"{START}{VIDEO}{END}"},
        special_tokens=("<|im_start|>", "<|im_end|>", START, END, IMAGE, VIDEO),
        config_class="Qwen3_5Config",
        config=_qwen3_5,
        processor_class="Qwen3VLProcessor",
        processor=_qwen3_5_processor,
        split=SPLIT,
    ),
    Spec(
        name="minicpmv4_6",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=("<|im_start|>", "<|im_end|>", IMAGE, VIDEO, *MINICPM_MARKERS.values()),
        named_tokens={"image_token": IMAGE, "video_token": VIDEO, **MINICPM_MARKERS},
        config_class="MiniCPMV4_6Config",
        config=_minicpmv4_6,
        processor_class="MiniCPMV4_6Processor",
        processor=_minicpmv4_6_processor,
        std=0.2,
    ),
)
