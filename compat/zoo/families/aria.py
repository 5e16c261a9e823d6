"""Aria: a tower over one padded square, queries that read it, a text model with experts.

Gives `SPECS`. Squares are of 980 pixels whatever a config says, so patches are large here to be few.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE = "<|img|>"
SIDE = 980
"""Pixels along a side; transformers' processor knows 490 and 980 only, and defaults to this."""
PATCH = 49
NUM_TOKENS = 4


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    text = text_sizes_with_head(tokenizer, intermediate_size=HIDDEN)
    return {
        "text_config": {
            "model_type": "aria_text",
            **text,
            "moe_num_experts": 4,
            "moe_topk": 2,
            "moe_num_shared_experts": 1,
        },
        "vision_config": tower_sizes(image_size=SIDE, patch_size=PATCH),
        "projector_patch_to_query_dict": {(SIDE // PATCH) ** 2: NUM_TOKENS},
        "image_token_index": token_id(tokenizer, IMAGE),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.AriaImageProcessor(max_image_size=SIDE, min_image_size=2 * PATCH),
        "tokenizer": tokenizer,
        "size_conversion": {SIDE: NUM_TOKENS},
    }


SPECS = (
    Spec(
        name="aria",
        placeholders={"image": f"<fim_prefix>{IMAGE}<fim_suffix>"},
        special_tokens=("<|im_start|>", "<|im_end|>", "<fim_prefix>", "<fim_suffix>", IMAGE),
        named_tokens={"image_token": IMAGE},
        config_class="AriaConfig",
        config=_config,
        processor_class="AriaProcessor",
        processor=_processor,
    ),
)
