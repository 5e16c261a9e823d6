"""Qwen2-VL and Qwen2.5-VL: towers over patches of a picture of any size, M-RoPE.

Gives `SPECS`. For Qwen3-VL, which adds deepstack, see `compat.zoo.families.qwen3`.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, LONGEST_EDGE, PATCH, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, VIDEO = "<|image_pad|>", "<|video_pad|>"
START, END = "<|vision_start|>", "<|vision_end|>"
UNIT = 2 * PATCH
"""Pixels along a side of one embedding: 2 x 2 patches are merged."""


def _token_ids(tokenizer: "PreTrainedTokenizerFast") -> dict[str, int]:
    return {
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "vision_start_token_id": token_id(tokenizer, START),
        "vision_end_token_id": token_id(tokenizer, END),
    }


def _text(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}
    return text_sizes(tokenizer, rope_parameters=rope)


def _qwen2_vl(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    tower = {
        "depth": TOWER_LAYERS,
        "embed_dim": TOWER_HIDDEN,
        "num_heads": TOWER_HEADS,
        "mlp_ratio": 2,
        "hidden_size": HIDDEN,
        "patch_size": PATCH,
    }
    return dict(text_config=_text(tokenizer), vision_config=tower, **_token_ids(tokenizer))


def _qwen2_5_vl(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    tower = {
        "depth": TOWER_LAYERS,
        "hidden_size": TOWER_HIDDEN,
        "num_heads": TOWER_HEADS,
        "intermediate_size": 2 * TOWER_HIDDEN,
        "out_hidden_size": HIDDEN,
        "patch_size": PATCH,
        # One layer with windows of 2 x 2 embeddings, one with full attention.
        "window_size": 2 * UNIT,
        "fullatt_block_indexes": [1],
    }
    return dict(text_config=_text(tokenizer), vision_config=tower, **_token_ids(tokenizer))


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"shortest_edge": 4 * UNIT**2, "longest_edge": LONGEST_EDGE**2}
    return {
        "image_processor": transformers.Qwen2VLImageProcessor(patch_size=PATCH, size=size),
        "video_processor": transformers.Qwen2VLVideoProcessor(patch_size=PATCH, size=size),
        "tokenizer": tokenizer,
    }


_SPECIAL_TOKENS = ("<|im_start|>", "<|im_end|>", START, END, IMAGE, VIDEO)
_PLACEHOLDERS = {"image": f"{START}{IMAGE}{END}", "video": f"{START}{VIDEO}{END}"}

SPECS = (
    Spec(
        name="qwen2_vl",
        placeholders=_PLACEHOLDERS,
        special_tokens=_SPECIAL_TOKENS,
        config_class="Qwen2VLConfig",
        config=_qwen2_vl,
        processor_class="Qwen2VLProcessor",
        processor=_processor,
    ),
    Spec(
        name="qwen2_5_vl",
        placeholders=_PLACEHOLDERS,
        special_tokens=_SPECIAL_TOKENS,
        config_class="Qwen2_5_VLConfig",
        config=_qwen2_5_vl,
        processor_class="Qwen2_5_VLProcessor",
        processor=_processor,
    ),
)
