"""VideoLLaMA 3: a tower over patches of a picture of any size; a video loses the patches that stay as they were.

Gives `SPECS`. The number of embeddings of a video depends on its pixels, and each frame's time stands before it.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.qwen import IMAGE, UNIT, VIDEO
from compat.zoo.sizes import LONGEST_EDGE, PATCH, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        "vision_config": {
            "hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "patch_size": PATCH,
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.VideoLlama3ImageProcessor(
            patch_size=PATCH, size={"shortest_edge": 4 * PATCH**2, "longest_edge": (LONGEST_EDGE // 2) ** 2}
        ),
        # Counts the pixels of all frames together.
        "video_processor": transformers.VideoLlama3VideoProcessor(
            patch_size=PATCH, size={"shortest_edge": 4 * UNIT**2, "longest_edge": 4 * LONGEST_EDGE**2}
        ),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="video_llama_3",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=("<|im_start|>", "<|im_end|>", IMAGE, VIDEO),
        config_class="VideoLlama3Config",
        config=_config,
        processor_class="VideoLlama3Processor",
        processor=_processor,
    ),
)
