"""Ovis 2: a tower over tiles that gives a distribution over visual words.

Gives `SPECS`. Markers inside an expansion, which is no single id over and over, get embeddings of visual words as well.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, PATCH, TILE, text_sizes, tower_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id, vocabulary_size
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, ATOM = "<image>", "<IMG_ATOM>"
MARKERS = ("<IMG_START>", "<IMG_GRID>", "<IMG_COL>", "<IMG_ROW>", "<IMG_END>")
VISUAL_WORDS = 64
STRIDE = 2
"""Patches along a side of one embedding."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        "vision_config": tower_sizes(
            vocab_size=VISUAL_WORDS, hidden_stride=STRIDE, num_visual_indicator_tokens=len(MARKERS)
        ),
        "image_token_id": token_id(tokenizer, ATOM),
        "visual_indicator_token_ids": [token_id(tokenizer, marker) for marker in MARKERS],
        "vocab_size": vocabulary_size(tokenizer),
        "hidden_size": HIDDEN,
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Ovis2ImageProcessor(
            size={"height": TILE, "width": TILE}, max_patches=4, crop_to_patches=True
        ),
        "tokenizer": tokenizer,
        "image_seq_length": (TILE // PATCH // STRIDE) ** 2,
    }


SPECS = (
    Spec(
        name="ovis2",
        placeholders={"image": IMAGE},
        special_tokens=("<|im_start|>", "<|im_end|>", IMAGE, ATOM, *MARKERS),
        config_class="Ovis2Config",
        config=_config,
        processor_class="Ovis2Processor",
        processor=_processor,
    ),
)
