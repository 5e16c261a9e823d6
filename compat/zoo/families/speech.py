"""Speech models whose extractor takes clips of any length: Granite Speech.

Gives `SPECS`. Not for windows of a fixed length (`compat.zoo.families.audio`).
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.audio import HUB_PREFIXES, MULTIMODAL
from compat.zoo.sizes import TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

GRANITE_MEL_BINS = 80
"""The extractor's default, which it does not save."""
BLOCK, RATE = 15, 5
"""Granite's connector makes one embedding of each `RATE` frames, in blocks of `BLOCK`."""


def _granite_speech(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "granite", **text_sizes(tokenizer)},
        "encoder_config": {
            # Two mel frames are stacked.
            "input_dim": 2 * GRANITE_MEL_BINS,
            "num_layers": TOWER_LAYERS,
            "hidden_dim": TOWER_HIDDEN,
            "feedforward_mult": 2,
            "num_heads": TOWER_HEADS,
            "output_dim": 12,
            # Shorter than most clips, so that a block's edge matters.
            "context_size": 20,
            "max_pos_emb": 32,
            "conv_kernel_size": 5,
        },
        "projector_config": {
            "model_type": "blip_2_qformer",
            "hidden_size": TOWER_HIDDEN,
            "encoder_hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "vocab_size": 16,
        },
        "audio_token_index": token_id(tokenizer, "<|audio|>"),
        "has_lora_adapter": False,
        "window_size": BLOCK,
        "downsample_rate": RATE,
        "tie_word_embeddings": False,
    }


def _granite_speech_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "audio_processor": transformers.GraniteSpeechFeatureExtractor(
            projector_window_size=BLOCK, projector_downsample_rate=RATE
        ),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="granite_speech",
        placeholders={"audio": "<|audio|>"},
        special_tokens=("<|start_of_role|>", "<|end_of_role|>", "<|audio|>"),
        config_class="GraniteSpeechConfig",
        config=_granite_speech,
        processor_class="GraniteSpeechProcessor",
        processor=_granite_speech_processor,
        model_class=MULTIMODAL,
        hub_prefixes=HUB_PREFIXES,
        turns=Turns(
            user="<|start_of_role|>user<|end_of_role|>",
            user_end="\n",
            assistant="<|start_of_role|>assistant<|end_of_role|>",
            assistant_end="\n",
        ),
    ),
)
