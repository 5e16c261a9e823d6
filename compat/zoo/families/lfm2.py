"""LFM2-VL: SigLIP 2 over tiles and a thumbnail of any shape, short convolutions and attention in turn.

Gives `SPECS`.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, PATCH, TILE, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, START, END, THUMBNAIL = "<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>"
MAX_TILES = 4
TILE_NAMES = tuple(f"<|img_row_{row}_col_{column}|>" for row in range(1, 5) for column in range(1, 5))
DOWNSAMPLE = 2
"""Patches along a side of one embedding."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {
            "model_type": "lfm2",
            **text_sizes(tokenizer),
            "layer_types": ["conv", "full_attention"],
            "block_auto_adjust_ff_dim": False,
        },
        "vision_config": {
            "model_type": "siglip2_vision_model",
            "hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "patch_size": PATCH,
            "num_patches": (TILE // PATCH) ** 2,
            "vision_use_head": False,
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "downsample_factor": DOWNSAMPLE,
        "projector_hidden_size": HIDDEN,
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Lfm2VlImageProcessor(
            tile_size=TILE,
            size={"height": TILE, "width": TILE},
            max_tiles=MAX_TILES,
            encoder_patch_size=PATCH,
            downsample_factor=DOWNSAMPLE,
            min_image_tokens=4,
            max_image_tokens=9,
        ),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="lfm2_vl",
        placeholders={"image": IMAGE},
        special_tokens=("<|im_start|>", "<|im_end|>", IMAGE, START, END, THUMBNAIL, *TILE_NAMES),
        config_class="Lfm2VlConfig",
        config=_config,
        processor_class="Lfm2VlProcessor",
        processor=_processor,
    ),
)
