"""Aya Vision and Command A Vision: SigLIP over tiles, Cohere 2 with sliding and full layers.

Gives `SPECS`. Aya's prompt placeholder is another token than those that embeddings replace.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, PATCH, TILE, TOWER_HIDDEN, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

START, END = "<|START_OF_IMG|>", "<|END_OF_IMG|>"
PATCH_TOKEN, LINE_BREAK = "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>"
MAX_TILES = 4
TURN_MARKERS = ("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>")
TURNS = Turns(
    user="<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
    user_end="<|END_OF_TURN_TOKEN|>",
    assistant="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    assistant_end="<|END_OF_TURN_TOKEN|>",
)
SIZE = {"height": TILE, "width": TILE}


def _text(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "model_type": "cohere2",
        # Shorter than most prompts, so that the window matters.
        "sliding_window": 32,
        "layer_types": ["sliding_attention", "full_attention"],
        # 1/16 in real checkpoints: with so few dimensions every token would be about equally likely.
        "logit_scale": 1.0,
        **text_sizes_with_head(tokenizer),
    }


def _tower() -> dict[str, Any]:
    return {"model_type": "siglip_vision_model", "vision_use_head": False, **tower_sizes()}


def _aya_vision(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": _text(tokenizer),
        "vision_config": _tower(),
        "image_token_index": token_id(tokenizer, PATCH_TOKEN),
        "downsample_factor": 2,
        "alignment_intermediate_size": 2 * TOWER_HIDDEN,
        "tie_word_embeddings": False,
    }


def _aya_vision_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.GotOcr2ImageProcessor(size=SIZE, max_patches=MAX_TILES, crop_to_patches=True),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "img_size": TILE,
        "downsample_factor": 2,
    }


def _cohere2_vision(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": _text(tokenizer),
        "vision_config": _tower(),
        "image_token_id": token_id(tokenizer, PATCH_TOKEN),
        "downsample_factor": 2,
        "alignment_intermediate_size": 2 * HIDDEN,
        "tie_word_embeddings": False,
    }


def _cohere2_vision_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Cohere2VisionImageProcessor(
            size=SIZE,
            max_patches=MAX_TILES,
            # Embeddings along a side of a tile: this processor's `patch_size` counts those, not pixels.
            patch_size=TILE // PATCH // 2,
        ),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="aya_vision",
        placeholders={"image": "<image>"},
        special_tokens=(
            *TURN_MARKERS,
            *(START, END, PATCH_TOKEN, LINE_BREAK, "<image>", "TILE_GLOBAL"),
            *(f"TILE_{number}" for number in range(1, MAX_TILES + 1)),
        ),
        config_class="AyaVisionConfig",
        config=_aya_vision,
        processor_class="AyaVisionProcessor",
        processor=_aya_vision_processor,
        turns=TURNS,
        bos="<BOS_TOKEN>",
    ),
    Spec(
        name="cohere2_vision",
        placeholders={"image": PATCH_TOKEN},
        special_tokens=(*TURN_MARKERS, START, END, PATCH_TOKEN, LINE_BREAK),
        named_tokens={
            "boi_token": START,
            "eoi_token": END,
            "image_token": PATCH_TOKEN,
            "img_line_break_token": LINE_BREAK,
        },
        config_class="Cohere2VisionConfig",
        config=_cohere2_vision,
        processor_class="Cohere2VisionProcessor",
        processor=_cohere2_vision_processor,
        turns=TURNS,
        bos="<BOS_TOKEN>",
    ),
)
