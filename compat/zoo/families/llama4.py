"""Llama 4: a tower over tiles with pixel shuffle, chunked attention, experts in every second layer.

Gives `SPECS`. An expansion has separators between tiles, and ends in a whole picture under the placeholder's own id.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, PATCH, TILE, TOWER_HIDDEN, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, PATCH_TOKEN = "<|image|>", "<|patch|>"
START, END = "<|image_start|>", "<|image_end|>"
SEPARATORS = ("<|tile_x_separator|>", "<|tile_y_separator|>")
HEADER, HEADER_END, TURN_END = "<|header_start|>", "<|header_end|>", "<|eot|>"


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {
            **text_sizes_with_head(tokenizer, intermediate_size=HIDDEN),
            "intermediate_size_mlp": 2 * HIDDEN,
            "num_local_experts": 4,
            "interleave_moe_layer_step": 2,
            # The first layer sees chunks shorter than most prompts, the second everything without positions.
            "attention_chunk_size": 32,
            "no_rope_layers": [1, 0],
        },
        "vision_config": {
            **tower_sizes(),
            # The projector reads 2 x 2 patches at once.
            "intermediate_size": 4 * TOWER_HIDDEN,
            "projector_input_dim": HIDDEN,
            "projector_output_dim": HIDDEN,
            "vision_output_dim": HIDDEN,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        },
        "boi_token_index": token_id(tokenizer, START),
        "eoi_token_index": token_id(tokenizer, END),
        "image_token_index": token_id(tokenizer, PATCH_TOKEN),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Llama4ImageProcessor(size={"height": TILE, "width": TILE}, max_patches=4),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "pixel_shuffle_ratio": 0.5,
    }


SPECS = (
    Spec(
        name="llama4",
        placeholders={"image": IMAGE},
        special_tokens=(HEADER, HEADER_END, TURN_END, START, END, PATCH_TOKEN, IMAGE, *SEPARATORS),
        config_class="Llama4Config",
        config=_config,
        processor_class="Llama4Processor",
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
