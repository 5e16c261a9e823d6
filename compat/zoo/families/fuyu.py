"""Fuyu: patches of a picture go through one linear layer into Persimmon.

Gives `SPECS`. Its processor takes a text without placeholders, puts the picture in front of it and a token of its own behind it,
and takes for given that the tokenizer marks the beginning of every text.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import PATCH, text_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PIECES = ("|SPEAKER|", "|NEWLINE|", "<0x00>", "<0x01>", "<0x02>", "<0x03>", "<0x04>")
"""Pieces of the vocabulary; no added tokens, as in the family's own tokenizer."""
SIDES = {"height": 64, "width": 96}
"""Largest sides of a picture."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    sizes = text_sizes(tokenizer, hidden_act="relu2", rope_parameters={"rope_type": "default", "rope_theta": 25000.0})
    del sizes["num_key_value_heads"]
    sizes["rope_parameters"]["partial_rotary_factor"] = 0.5
    return {
        "text_config": {"model_type": "persimmon", **sizes},
        **sizes,
        "patch_size": PATCH,
        "image_token_id": tokenizer.convert_tokens_to_ids("|SPEAKER|"),
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.FuyuImageProcessor(size=SIDES, patch_size={"height": PATCH, "width": PATCH}),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="fuyu",
        placeholders={"image": ""},
        special_tokens=(),
        pieces=PIECES,
        config_class="FuyuConfig",
        config=_config,
        processor_class="FuyuProcessor",
        processor=_processor,
        turns=Turns(user="", user_end="\n", assistant="", assistant_end=""),
        bos="<s>",
        seed=2,
    ),
)
