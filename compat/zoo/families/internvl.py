"""InternVL and Qianfan-OCR: InternViT over tiles, with pixel shuffle.

Gives `SPECS`. InternVL's processor reads the names of tokens from the tokenizer and takes pictures and frames as one field.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import PATCH, TILE, text_sizes, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, VIDEO, START, END = "<IMG_CONTEXT>", "<video>", "<img>", "</img>"
TOKENS_PER_TILE = (TILE // PATCH // 2) ** 2


def _internvl(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        "vision_config": tower_sizes(image_size=[TILE, TILE], patch_size=[PATCH, PATCH]),
        "image_token_id": token_id(tokenizer, IMAGE),
        "image_seq_length": TOKENS_PER_TILE,
        "downsample_ratio": 0.5,
        "tie_word_embeddings": False,
    }


def _internvl_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"height": TILE, "width": TILE}
    return {
        "image_processor": transformers.GotOcr2ImageProcessor(size=size, max_patches=4, crop_to_patches=True),
        "video_processor": transformers.InternVLVideoProcessor(size=size),
        "tokenizer": tokenizer,
        "image_seq_length": TOKENS_PER_TILE,
    }


def _qianfan_ocr(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen3", **text_sizes_with_head(tokenizer)},
        "vision_config": tower_sizes(image_size=[TILE, TILE], patch_size=[PATCH, PATCH]),
        "image_token_id": token_id(tokenizer, IMAGE),
        "image_seq_length": TOKENS_PER_TILE,
        "downsample_ratio": 0.5,
        "tie_word_embeddings": False,
    }


def _qianfan_ocr_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"height": TILE, "width": TILE}
    return {
        "image_processor": transformers.GotOcr2ImageProcessor(size=size, max_patches=4, crop_to_patches=True),
        "tokenizer": tokenizer,
        "image_seq_length": TOKENS_PER_TILE,
    }


SPECS = (
    Spec(
        name="internvl",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=("<|im_start|>", "<|im_end|>", START, END, IMAGE, VIDEO),
        named_tokens={
            "start_image_token": START,
            "end_image_token": END,
            "context_image_token": IMAGE,
            "video_token": VIDEO,
        },
        config_class="InternVLConfig",
        config=_internvl,
        processor_class="InternVLProcessor",
        processor=_internvl_processor,
    ),
    Spec(
        name="qianfan_ocr",
        # A word of the chat template's, which is no token: the processor puts tokens in its place.
        placeholders={"image": "<image>"},
        special_tokens=("<|im_start|>", "<|im_end|>", START, END, IMAGE),
        named_tokens={"start_image_token": START, "end_image_token": END, "context_image_token": IMAGE},
        config_class="QianfanOCRConfig",
        config=_qianfan_ocr,
        processor_class="QianfanOCRProcessor",
        processor=_qianfan_ocr_processor,
    ),
)
