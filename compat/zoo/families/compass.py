"""Cohere Compass: features of several tower layers are added to as many text layers, as in Qwen3-VL. M-RoPE in layers that attend
to a window, no positions in the others.

Gives `SPECS`. A video is expanded frame by frame, each with its time as text before it.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, LONGEST_EDGE, PATCH, TILE, TOWER_HEADS, TOWER_HIDDEN, text_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, VIDEO, START, END = "<|IMAGE_PAD|>", "<|VIDEO_PAD|>", "<|VISION_START|>", "<|VISION_END|>"
LAYERS = 4
"""Layers of the text model and of the tower: one more than there are levels of deepstack."""
LEVELS = 3
UNIT = 2 * PATCH
"""Pixels along a side of one embedding."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5]}
    return {
        "text_config": text_sizes(
            tokenizer,
            num_hidden_layers=LAYERS,
            layer_types=["sliding_attention", "full_attention"] * (LAYERS // 2),
            rope_parameters={"sliding_attention": rope, "full_attention": None},
            sliding_window=4096,
            logit_scale=0.5,
        ),
        "vision_config": {
            "depth": LAYERS,
            "hidden_size": TOWER_HIDDEN,
            "num_heads": TOWER_HEADS,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "out_hidden_size": HIDDEN,
            "patch_size": PATCH,
            "num_position_embeddings": (TILE // PATCH) ** 2,
            "deepstack_visual_indexes": list(range(LEVELS)),
            "rope_parameters": {"rope_type": "axial", "rope_theta": 10000.0},
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "vision_start_token_id": token_id(tokenizer, START),
        "vision_end_token_id": token_id(tokenizer, END),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.CohereCompassImageProcessor(
            patch_size=PATCH, size={"shortest_edge": 4 * UNIT**2, "longest_edge": LONGEST_EDGE**2}
        ),
        # Counts the pixels of all frames together.
        "video_processor": transformers.CohereCompassVideoProcessor(
            patch_size=PATCH, size={"shortest_edge": 8 * UNIT**2, "longest_edge": 2 * LONGEST_EDGE**2}
        ),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="cohere_compass",
        placeholders={"image": f"{START}{IMAGE}{END}", "video": f"{START}{VIDEO}{END}"},
        special_tokens=("<|im_start|>", "<|im_end|>", START, END, IMAGE, VIDEO),
        config_class="CohereCompassConfig",
        config=_config,
        processor_class="CohereCompassProcessor",
        processor=_processor,
    ),
)
