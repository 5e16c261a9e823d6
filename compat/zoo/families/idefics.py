"""Idefics2, Idefics3 and SmolVLM: SigLIP over tiles; the last two name each tile by its row and column in the prompt.

Gives `SPECS`. An expansion holds text and newlines of its own, and its fields carry a batch dimension before the tiles.
Idefics2 edits the text around its pictures as well, and never says where it put them.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, LONGEST_EDGE, PATCH, TILE, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, FAKE, GLOBAL, END = "<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>"
VIDEO = "<video>"
TILE_NAMES = tuple(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))
SCALE = 2
"""Patches along a side of one embedding."""
LATENTS = 4
"""Embeddings of one picture of Idefics2, whatever its size."""
TURNS = Turns(user="User:", user_end=f"{END}\n", assistant="Assistant:", assistant_end=f"{END}\n")


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


def _smolvlm_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size, tile = {"longest_edge": 2 * TILE}, {"longest_edge": TILE}
    return {
        "image_processor": transformers.SmolVLMImageProcessor(size=size, max_image_size=tile),
        "video_processor": transformers.SmolVLMVideoProcessor(
            size=size, max_image_size=tile, video_sampling={"fps": 1, "max_frames": 8, "video_size": size}
        ),
        "tokenizer": tokenizer,
        "image_seq_len": (TILE // PATCH // SCALE) ** 2,
    }


def _idefics2(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "mistral", "sliding_window": None, **text_sizes_with_head(tokenizer)},
        "vision_config": tower_sizes(image_size=LONGEST_EDGE),
        "perceiver_config": {
            "hidden_size": HIDDEN,
            "resampler_n_latents": LATENTS,
            "resampler_depth": 1,
            "resampler_n_heads": 2,
            "resampler_head_dim": 16,
            "num_key_value_heads": 1,
        },
        "image_token_id": token_id(tokenizer, IMAGE),
    }


def _idefics2_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Idefics2ImageProcessor(
            size={"shortest_edge": TILE, "longest_edge": LONGEST_EDGE}, do_image_splitting=True
        ),
        "tokenizer": tokenizer,
        "image_seq_len": LATENTS,
    }


SPECS = (
    Spec(
        name="idefics2",
        placeholders={"image": IMAGE},
        special_tokens=(FAKE, IMAGE, END),
        named_tokens={"image_token": IMAGE, "image_boundary_token": FAKE},
        config_class="Idefics2Config",
        config=_idefics2,
        processor_class="Idefics2Processor",
        processor=_idefics2_processor,
        turns=TURNS,
        bos="<s>",
    ),
    Spec(
        name="idefics3",
        placeholders={"image": IMAGE},
        special_tokens=(FAKE, IMAGE, GLOBAL, END, *TILE_NAMES),
        config_class="Idefics3Config",
        config=_idefics3,
        processor_class="Idefics3Processor",
        processor=_idefics3_processor,
        turns=TURNS,
        bos="<|begin_of_text|>",
    ),
    Spec(
        name="smolvlm",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=("<|im_start|>", FAKE, IMAGE, VIDEO, GLOBAL, END, *TILE_NAMES),
        config_class="SmolVLMConfig",
        config=_idefics3,
        processor_class="SmolVLMProcessor",
        processor=_smolvlm_processor,
        turns=TURNS,
    ),
)
