"""Gemma 4 without encoders: patches of pixels and frames of samples go to the text model through a projection.

Gives `SPECS`. Tokens and processor as Gemma 4 has them (`compat.zoo.families.gemma4`).
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.gemma4 import (
    NAMED_TOKENS,
    PLACEHOLDERS,
    POOL,
    SPECIAL_TOKENS,
    TURNS,
    text_arguments,
    token_ids,
)
from compat.zoo.sizes import PATCH, TOWER_HIDDEN
from compat.zoo.spec import Spec
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SAMPLES = 640
"""Samples of one embedding: 40 ms."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": text_arguments(tokenizer),
        "vision_config": {
            "patch_size": PATCH,
            "pooling_kernel_size": POOL,
            "mm_embed_dim": TOWER_HIDDEN,
            # More than a picture has embeddings along a side.
            "mm_posemb_size": 70,
            "output_proj_dims": TOWER_HIDDEN,
        },
        "audio_config": {"audio_embed_dim": SAMPLES},
        **token_ids(tokenizer),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    # 70 embeddings a picture and frame: the smallest that these processors take.
    sizes = {"patch_size": PATCH, "pooling_kernel_size": POOL, "max_soft_tokens": 70}
    return {
        "feature_extractor": transformers.Gemma4UnifiedAudioFeatureExtractor(
            feature_size=SAMPLES, audio_samples_per_token=SAMPLES
        ),
        "image_processor": transformers.Gemma4UnifiedImageProcessor(**sizes),
        "video_processor": transformers.Gemma4UnifiedVideoProcessor(**sizes),
        "tokenizer": tokenizer,
        "image_seq_length": 70,
    }


SPECS = (
    Spec(
        name="gemma4_unified",
        placeholders=PLACEHOLDERS,
        special_tokens=SPECIAL_TOKENS,
        named_tokens=NAMED_TOKENS,
        config_class="Gemma4UnifiedConfig",
        config=_config,
        processor_class="Gemma4UnifiedProcessor",
        processor=_processor,
        turns=TURNS,
        bos="<bos>",
    ),
)
