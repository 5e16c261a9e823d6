"""HunYuan-VL (HunyuanOCR): a tower over patches of a picture of any size, M-RoPE with four axes.

Gives `SPECS`. A row of embeddings ends with one for a new line, and its processor refuses a picture's token without those for
begin and end around it.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import (
    HIDDEN,
    LONGEST_EDGE,
    PATCH,
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

IMAGE, START, END, NEW_LINE = "<image_pad>", "<img_start>", "<img_end>", "<img_newline>"
UNIT = 2 * PATCH


def _hunyuan_vl(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 4, 4, 4]}
    return {
        "text_config": text_sizes_with_head(tokenizer, rope_parameters=rope),
        "vision_config": {
            "hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "patch_size": PATCH,
            "out_hidden_size": HIDDEN,
            "text_hidden_size": HIDDEN,
            "max_image_size": LONGEST_EDGE,
            "min_image_size": UNIT,
            "img_max_token_num": 64,
            "max_vit_seq_len": 256,
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "im_start_id": token_id(tokenizer, START),
        "im_end_id": token_id(tokenizer, END),
        "im_newline_id": token_id(tokenizer, NEW_LINE),
        "tie_word_embeddings": False,
    }


def _hunyuan_vl_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"shortest_edge": 4 * UNIT**2, "longest_edge": LONGEST_EDGE**2}
    return {
        "image_processor": transformers.HunYuanVLImageProcessor(patch_size=PATCH, size=size),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="hunyuan_vl",
        placeholders={"image": f"{START}{IMAGE}{END}"},
        special_tokens=("<|startoftext|>", "<|user|>", "<|assistant|>", START, END, NEW_LINE, IMAGE),
        named_tokens={"image_token": IMAGE, "image_start_token": START, "image_end_token": END},
        config_class="HunYuanVLConfig",
        config=_hunyuan_vl,
        processor_class="HunYuanVLProcessor",
        processor=_hunyuan_vl_processor,
        # Begin of text is written by the template: the processor asks its tokenizer for no special tokens, and vLLM asks for them
        # where a prompt is text, so that a tokenizer which puts one before every text (`bos`) has it once more there.
        turns=Turns(user="<|startoftext|>", user_end="<|user|>", assistant="", assistant_end="<|assistant|>"),
    ),
)
