"""Idefics3: SigLIP over tiles, each named by its row and column in the prompt.

Gives `SPECS`. An expansion holds text and newlines of its own, and its fields carry a batch dimension before the tiles.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import PATCH, TILE, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, FAKE, GLOBAL, END = "<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"
TILE_NAMES = tuple(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))
SCALE = 2
"""Patches along a side of one embedding."""


def _idefics3(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "vision_config": tower_sizes(),
        "image_token_id": token_id(tokenizer, IMAGE),
        "pad_token_id": tokenizer.pad_token_id,
        "scale_factor": SCALE,
    }


def _idefics3_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Idefics3ImageProcessor(
            size={"longest_edge": 2 * TILE}, max_image_size={"longest_edge": TILE}
        ),
        "tokenizer": tokenizer,
        "image_seq_len": (TILE // PATCH // SCALE) ** 2,
    }


SPECS = (
    Spec(
        name="idefics3",
        placeholders={"image": IMAGE},
        special_tokens=(FAKE, IMAGE, GLOBAL, END, *TILE_NAMES),
        config_class="Idefics3Config",
        config=_idefics3,
        processor_class="Idefics3Processor",
        processor=_idefics3_processor,
        turns=Turns(user="User:", user_end=f"{END}\n", assistant="Assistant:", assistant_end=f"{END}\n"),
        bos="<|begin_of_text|>",
    ),
)
