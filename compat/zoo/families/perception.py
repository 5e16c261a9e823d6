"""Perception LM: timm's perception encoder over tiles, an additional thumbnail for pictures.

Gives `SPECS`. Its pixels are [pictures, tiles, 3, height, width]: one picture's tiles stay in a dimension of their own.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import (
    PATCH,
    TILE,
    TOWER_HEADS,
    TOWER_HIDDEN,
    TOWER_LAYERS,
    text_sizes_with_head,
)
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, VIDEO = "<|image|>", "<|video|>"
HEADER, HEADER_END, TURN_END = "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"
POOL = 2
"""Patches along a side of one embedding."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "vision_config": {
            "architecture": "vit_pe_core_large_patch14_336",
            "do_pooling": False,
            "global_pool": "map",
            "num_classes": 0,
            "model_args": {
                "embed_dim": TOWER_HIDDEN,
                "depth": TOWER_LAYERS,
                "num_heads": TOWER_HEADS,
                "mlp_ratio": 2.0,
                "patch_size": PATCH,
                "img_size": [TILE, TILE],
                "ref_feat_shape": [TILE // PATCH, TILE // PATCH],
                "global_pool": "",
                "use_post_transformer_norm": False,
                "init_values": 0.1,
            },
        },
        "vision_use_cls_token": True,
        "projector_pooling_ratio": POOL,
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.PerceptionLMImageProcessor(
            tile_size=TILE, max_num_tiles=4, vision_input_type="thumb+tile"
        ),
        "video_processor": transformers.PerceptionLMVideoProcessor(size={"height": TILE, "width": TILE}),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "pooling_ratio": POOL,
    }


SPECS = (
    Spec(
        name="perception_lm",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=(HEADER, HEADER_END, TURN_END, IMAGE, VIDEO),
        named_tokens={"image_token": IMAGE, "video_token": VIDEO},
        config_class="PerceptionLMConfig",
        config=_config,
        processor_class="PerceptionLMProcessor",
        processor=_processor,
        turns=Turns(
            user=f"{HEADER}user{HEADER_END}\n\n",
            user_end=TURN_END,
            assistant=f"{HEADER}assistant{HEADER_END}\n\n",
            assistant_end=TURN_END,
        ),
        bos="<|begin_of_text|>",
    ),
)
