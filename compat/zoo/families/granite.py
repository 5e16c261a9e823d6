"""Granite 4 Vision: SigLIP over tiles, features of several kinds are added to as many text layers.

Gives `SPECS`. No features stand at the placeholders themselves: they start at zero, and each layer adds its own.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.llava import GRID, IMAGE
from compat.zoo.sizes import HEAD, PATCH, TILE, text_sizes, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

START, END = "<|start_of_role|>", "<|end_of_role|>"
TEXT_END = "<|end_of_text|>"
TOWER_HIDDEN = 64
"""One head: from transformers 5.24 on its config has a head for every 64, whatever the checkpoint says."""
DOWNSAMPLE = "1/2"
"""Embeddings along a side of a window, and patches along it."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {
            "model_type": "granite4_vision_text",
            **text_sizes(tokenizer, num_hidden_layers=6),
            "attention_multiplier": HEAD**-0.5,
        },
        "vision_config": {
            "model_type": "siglip_vision_model",
            "vision_use_head": False,
            **tower_sizes(hidden_size=TOWER_HIDDEN, intermediate_size=2 * TOWER_HIDDEN),
        },
        "qformer_config": {
            "model_type": "blip_2_qformer",
            "num_hidden_layers": 1,
            "hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_attention_heads": 1,
            "encoder_hidden_size": TOWER_HIDDEN,
            "cross_attention_frequency": 1,
            "use_qformer_text_input": False,
        },
        "image_token_index": token_id(tokenizer, IMAGE),
        "image_grid_pinpoints": GRID,
        "vision_feature_select_strategy": "full",
        "downsample_rate": DOWNSAMPLE,
        # Layer of the tower, layer of the text model that takes its features; then four quarters of the last one's.
        "deepstack_layer_map": [[-2, 0], [-1, 1]],
        "spatial_target_layers": [2, 3, 4, 5],
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.LlavaNextImageProcessor(
            size={"shortest_edge": TILE},
            crop_size={"height": TILE, "width": TILE},
            image_grid_pinpoints=GRID,
        ),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "vision_feature_select_strategy": "full",
        "downsample_rate": DOWNSAMPLE,
    }


SPECS = (
    Spec(
        name="granite4_vision",
        placeholders={"image": IMAGE},
        special_tokens=(START, END, TEXT_END, IMAGE),
        named_tokens={"image_token": IMAGE},
        config_class="Granite4VisionConfig",
        config=_config,
        processor_class="Granite4VisionProcessor",
        processor=_processor,
        turns=Turns(
            user=f"{START}user{END}",
            user_end=f"{TEXT_END}\n",
            assistant=f"{START}assistant{END}",
            assistant_end=f"{TEXT_END}\n",
        ),
    ),
)
