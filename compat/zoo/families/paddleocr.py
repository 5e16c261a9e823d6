"""PaddleOCR-VL: a tower over patches of a picture of any size, M-RoPE, Ernie's text model.

Gives `SPECS`. The config names ids of videos, the processor takes none.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.qwen import UNIT
from compat.zoo.sizes import LONGEST_EDGE, PATCH, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, START, END = "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_START|>", "<|IMAGE_END|>"
VIDEO = "<|video_pad|>"
SENTENCE_END = "<|end_of_sentence|>"


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}
    return {
        "text_config": text_sizes_with_head(tokenizer, rope_parameters=rope),
        "vision_config": tower_sizes(),
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "vision_start_token_id": token_id(tokenizer, START),
        "vision_end_token_id": token_id(tokenizer, END),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.PaddleOCRVLImageProcessor(
            patch_size=PATCH, size={"shortest_edge": 4 * UNIT**2, "longest_edge": LONGEST_EDGE**2}
        ),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="paddleocr_vl",
        placeholders={"image": f"{START}{IMAGE}{END}"},
        special_tokens=(SENTENCE_END, START, END, IMAGE, VIDEO),
        named_tokens={"image_token": IMAGE},
        config_class="PaddleOCRVLConfig",
        config=_config,
        processor_class="PaddleOCRVLProcessor",
        processor=_processor,
        turns=Turns(user="User: ", user_end="\n", assistant="Assistant: ", assistant_end=SENTENCE_END),
        bos="<|begin_of_sentence|>",
    ),
)
