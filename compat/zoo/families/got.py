"""GOT-OCR 2: SAM's tower over one square, scaled down sixteen times by convolutions.

Gives `SPECS`. Its processor refuses a prompt without pictures.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, START, END = "<imgpad>", "<img>", "</img>"
PATCH = 4
SIDE = 64 * PATCH
"""Pixels along a side of a picture: 64 x 64 patches become 16 x 16 embeddings."""
NUM_TOKENS = 256
"""The processor's default, which no file of a checkpoint changes."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        "vision_config": {
            "hidden_size": TOWER_HIDDEN,
            "output_channels": TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "mlp_dim": 2 * TOWER_HIDDEN,
            "image_size": SIDE,
            "patch_size": PATCH,
            # Windows in both layers: full attention over 4096 patches would take a second a picture.
            "window_size": 16,
            "global_attn_indexes": [],
        },
        "image_token_index": token_id(tokenizer, IMAGE),
        "image_seq_length": NUM_TOKENS,
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.GotOcr2ImageProcessor(
            size={"height": SIDE, "width": SIDE}, max_patches=4, crop_to_patches=False
        ),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="got_ocr2",
        placeholders={"image": f"{START}{IMAGE}{END}"},
        special_tokens=("<|im_start|>", "<|im_end|>", START, END, IMAGE),
        config_class="GotOcr2Config",
        config=_config,
        processor_class="GotOcr2Processor",
        processor=_processor,
    ),
)
