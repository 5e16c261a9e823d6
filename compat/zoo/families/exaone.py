"""EXAONE 4.5: Qwen2.5-VL's tower with grouped heads, EXAONE 4 with sliding and full layers, positions in one dimension.

Gives `SPECS`.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.qwen import END, IMAGE, START, UNIT, VIDEO
from compat.zoo.sizes import HIDDEN, LONGEST_EDGE, PATCH, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {
            "model_type": "exaone4",
            **text_sizes(tokenizer),
            # Shorter than most prompts, so that the window matters.
            "sliding_window": 32,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        "vision_config": {
            "depth": TOWER_LAYERS,
            "hidden_size": TOWER_HIDDEN,
            "num_heads": TOWER_HEADS,
            "num_key_value_heads": 1,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "out_hidden_size": HIDDEN,
            "patch_size": PATCH,
            # One layer with windows of 2 x 2 embeddings, one with full attention.
            "window_size": 2 * UNIT,
            "fullatt_block_indexes": [1],
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"shortest_edge": 4 * UNIT**2, "longest_edge": LONGEST_EDGE**2}
    return {
        "image_processor": transformers.Qwen2VLImageProcessor(patch_size=PATCH, size=size),
        "video_processor": transformers.Qwen2VLVideoProcessor(patch_size=PATCH, size=size),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="exaone4_5",
        placeholders={"image": f"{START}{IMAGE}{END}", "video": f"{START}{VIDEO}{END}"},
        special_tokens=("[|user|]", "[|assistant|]", "[|endofturn|]", START, END, IMAGE, VIDEO),
        config_class="Exaone4_5_Config",
        config=_config,
        processor_class="Exaone4_5_Processor",
        processor=_processor,
        turns=Turns(
            user="[|user|]\n", user_end="[|endofturn|]\n", assistant="[|assistant|]\n", assistant_end="[|endofturn|]\n"
        ),
    ),
)
