"""Chameleon: a VQ-VAE makes words of a picture, and their embeddings are those of the text model's own table.

Gives `SPECS`. Its processor ends every prompt with a separator, and its config has no part for the text model.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import TILE, text_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, START, END, SEPARATOR = "<image>", "<racm3:break>", "<eoss>", "<reserved08706>"
VISUAL_WORDS = tuple(
    # The number of a word in letters, A for 0, as transformers reads it back from the vocabulary.
    "IMGIMG" + "".join(chr(ord("A") + int(digit)) for digit in str(number)) + "Z"
    for number in range(64)
)
LEVELS = (1, 1, 1, 1)
"""Channels of each level of the VQ-VAE; each but the first halves a side."""
NUM_TOKENS = (TILE // 2 ** (len(LEVELS) - 1)) ** 2


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    words = {word: token_id(tokenizer, word) for word in VISUAL_WORDS}
    return {
        **text_sizes(tokenizer),
        "vocabulary_map": {IMAGE: token_id(tokenizer, IMAGE), **words},
        "vq_config": {
            "embed_dim": 16,
            "num_embeddings": len(VISUAL_WORDS),
            "latent_channels": 16,
            "resolution": TILE,
            # 32 groups are normalised; one channel each.
            "base_channels": 32,
            "channel_multiplier": list(LEVELS),
            "num_res_blocks": 1,
        },
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.ChameleonImageProcessor(
            size={"shortest_edge": TILE}, crop_size={"height": TILE, "width": TILE}
        ),
        "tokenizer": tokenizer,
        "image_seq_length": NUM_TOKENS,
    }


SPECS = (
    Spec(
        name="chameleon",
        placeholders={"image": IMAGE},
        special_tokens=("</s>", IMAGE, START, END, SEPARATOR, *VISUAL_WORDS),
        named_tokens={"image_token": IMAGE, "boi_token": START, "eoi_token": END, "sep_token": SEPARATOR},
        config_class="ChameleonConfig",
        config=_config,
        processor_class="ChameleonProcessor",
        processor=_processor,
        turns=Turns(user="", user_end="", assistant="", assistant_end=""),
        bos="<s>",
    ),
)
