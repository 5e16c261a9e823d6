"""Mistral 3, LightOnOCR and Pixtral: Pixtral's tower over pictures of any size, patches merged 2 x 2 but by the last.

Gives `SPECS`. Pixtral is LLaVA to transformers but for its tower and its processor. An expansion has a separator after
each row of embeddings, and joint calls pad pictures to the largest.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import LONGEST_EDGE, PATCH, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, BREAK, END = "[IMG]", "[IMG_BREAK]", "[IMG_END]"
MERGE = 2


def _mistral3(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "mistral", "sliding_window": None, **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "pixtral", **tower_sizes(image_size=LONGEST_EDGE)},
        "image_token_index": token_id(tokenizer, IMAGE),
        "spatial_merge_size": MERGE,
        "tie_word_embeddings": False,
    }


def _mistral3_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.PixtralImageProcessor(
            patch_size={"height": PATCH, "width": PATCH}, size={"longest_edge": LONGEST_EDGE}
        ),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
    }


def _lighton_ocr(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen3", **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "pixtral", **tower_sizes(image_size=LONGEST_EDGE)},
        "image_token_id": token_id(tokenizer, IMAGE),
        "spatial_merge_size": MERGE,
        "tie_word_embeddings": False,
    }


def _pixtral(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "mistral", "sliding_window": None, **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "pixtral", **tower_sizes(image_size=LONGEST_EDGE)},
        "image_token_index": token_id(tokenizer, IMAGE),
        "vision_feature_select_strategy": "full",
        "vision_feature_layer": -1,
        "tie_word_embeddings": False,
    }


def _pixtral_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.PixtralImageProcessor(
            patch_size={"height": PATCH, "width": PATCH}, size={"longest_edge": LONGEST_EDGE // 2}
        ),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
    }


SPECS = (
    Spec(
        name="mistral3",
        placeholders={"image": IMAGE},
        special_tokens=("</s>", "[INST]", "[/INST]", IMAGE, BREAK, END),
        config_class="Mistral3Config",
        config=_mistral3,
        processor_class="PixtralProcessor",
        processor=_mistral3_processor,
        turns=Turns(user="[INST]", user_end="[/INST]", assistant="", assistant_end="</s>"),
        bos="<s>",
        # transformers' `get_image_features` squeezes away the only row of a picture with one embedding, then fails.
        smallest_picture=(2 * PATCH + 5, 5),
    ),
    Spec(
        name="pixtral",
        placeholders={"image": IMAGE},
        special_tokens=("</s>", "[INST]", "[/INST]", IMAGE, BREAK, END),
        config_class="LlavaConfig",
        config=_pixtral,
        processor_class="PixtralProcessor",
        processor=_pixtral_processor,
        turns=Turns(user="[INST]", user_end="[/INST]", assistant="", assistant_end="</s>"),
        bos="<s>",
    ),
    Spec(
        name="lighton_ocr",
        placeholders={"image": IMAGE},
        special_tokens=("<|im_start|>", "<|im_end|>", IMAGE, BREAK, END),
        named_tokens={"image_token": IMAGE, "image_break_token": BREAK, "image_end_token": END},
        config_class="LightOnOcrConfig",
        config=_lighton_ocr,
        processor_class="LightOnOcrProcessor",
        processor=_mistral3_processor,
        # Patches that fill no 2 x 2 are dropped, on both sides; fewer than four leave none.
        smallest_picture=(2 * PATCH + 5, 2 * PATCH + 1),
    ),
)
