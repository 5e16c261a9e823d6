"""Speech models whose extractor takes clips of any length: Granite Speech, Fun-ASR-Nano, VibeVoice-ASR, Qwen3-ASR.

Gives `SPECS`. Not for windows of a fixed length (`compat.zoo.families.audio`).
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compat.zoo.families.audio import HUB_PREFIXES, MEL_BINS, MULTIMODAL
from compat.zoo.sizes import HIDDEN, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes, text_sizes_with_head
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


def _granite_speech_plus(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    config = _granite_speech(tokenizer)
    # The output of one layer more stands beside the last one's.
    config["encoder_config"]["cat_hidden_layers"] = [1]
    config["projector_config"]["encoder_hidden_size"] = 2 * TOWER_HIDDEN
    return config


def _granite_speech_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "audio_processor": transformers.GraniteSpeechFeatureExtractor(
            projector_window_size=BLOCK, projector_downsample_rate=RATE
        ),
        "tokenizer": tokenizer,
    }


def _fun_asr_nano(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen3", **text_sizes_with_head(tokenizer)},
        "audio_config": {
            "num_mel_bins": MEL_BINS,
            "hidden_size": TOWER_HIDDEN,
            "num_attention_heads": TOWER_HEADS,
            "intermediate_size": 2 * TOWER_HIDDEN,
            # The last is there for timestamps.
            "num_hidden_layers": TOWER_LAYERS + 1,
            "num_timestamp_prediction_layers": 1,
            "fsmn_kernel_size": 5,
        },
        "adaptor_config": {
            "hidden_size": HIDDEN,
            "num_attention_heads": TOWER_HEADS,
            "intermediate_size": HIDDEN // 4,
            "num_hidden_layers": 1,
            "projector_hidden_size": 2 * TOWER_HIDDEN,
        },
        "audio_token_id": token_id(tokenizer, "<|object_ref_start|>"),
        "tie_word_embeddings": False,
    }


def _fun_asr_nano_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "feature_extractor": transformers.FunAsrNanoFeatureExtractor(feature_size=MEL_BINS),
        "tokenizer": tokenizer,
    }


def _vibevoice_asr(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    # The ratios' product, 3200 samples an embedding, stands in the processor; filters double with each.
    encoder = {"num_filters": 2, "depths": [1] * 7, "downsampling_ratios": [2, 2, 4, 5, 5, 8], "kernel_size": 3}
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        # Real checkpoints add noise to these latents, new with each call: no two answers could be compared.
        "acoustic_tokenizer_encoder_config": {"hidden_size": 16, "vae_std": 0.0, **encoder},
        "semantic_tokenizer_encoder_config": {"hidden_size": 24, **encoder},
        "audio_token_id": token_id(tokenizer, "<|box_start|>"),
        "audio_bos_token_id": token_id(tokenizer, "<|object_ref_start|>"),
        "audio_eos_token_id": token_id(tokenizer, "<|object_ref_end|>"),
        # One second, so that longer clips are encoded in chunks.
        "acoustic_tokenizer_chunk_size": 8 * 3200,
    }


def _vibevoice_asr_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {"feature_extractor": transformers.VibeVoiceAcousticTokenizerFeatureExtractor(), "tokenizer": tokenizer}


QWEN3_ASR_TOKENS = {
    "audio_token": "<|audio_pad|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}


def _qwen3_asr(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen3", **text_sizes_with_head(tokenizer)},
        # One second a chunk of the convolution, which stands in the processor; attention over two.
        "audio_config": {
            "model_type": "qwen3_asr_encoder",
            "num_mel_bins": MEL_BINS,
            "encoder_layers": TOWER_LAYERS,
            "encoder_attention_heads": TOWER_HEADS,
            "encoder_ffn_dim": 2 * TOWER_HIDDEN,
            "d_model": TOWER_HIDDEN,
            "n_window": 50,
            "n_window_infer": 200,
            "downsample_hidden_size": MEL_BINS,
            "output_dim": HIDDEN,
        },
        "audio_token_id": token_id(tokenizer, QWEN3_ASR_TOKENS["audio_token"]),
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "tie_word_embeddings": False,
    }


def _qwen3_asr_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {"feature_extractor": transformers.Qwen3ASRFeatureExtractor(feature_size=MEL_BINS), "tokenizer": tokenizer}


GRANITE_SPEECH = Spec(
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
)

SPECS = (
    Spec(
        name="qwen3_asr",
        placeholders={"audio": "<|audio_start|><|audio_pad|><|audio_end|>"},
        special_tokens=("<|im_start|>", "<|im_end|>", *QWEN3_ASR_TOKENS.values()),
        named_tokens=QWEN3_ASR_TOKENS,
        config_class="Qwen3ASRConfig",
        config=_qwen3_asr,
        processor_class="Qwen3ASRProcessor",
        processor=_qwen3_asr_processor,
        model_class=MULTIMODAL,
    ),
    Spec(
        name="fun_asr_nano",
        placeholders={"audio": "<|object_ref_start|>"},
        special_tokens=("<|im_start|>", "<|im_end|>", "<|object_ref_start|>"),
        config_class="FunAsrNanoConfig",
        config=_fun_asr_nano,
        processor_class="FunAsrNanoProcessor",
        processor=_fun_asr_nano_processor,
        model_class=MULTIMODAL,
    ),
    Spec(
        name="vibevoice_asr",
        placeholders={"audio": "<|object_ref_start|><|box_start|><|object_ref_end|>"},
        special_tokens=("<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|box_start|>", "<|object_ref_end|>"),
        config_class="VibeVoiceAsrConfig",
        config=_vibevoice_asr,
        processor_class="VibeVoiceAsrProcessor",
        processor=_vibevoice_asr_processor,
        # With the usual spread a clip hardly changes the answer.
        std=0.2,
        model_class=MULTIMODAL,
        hub_prefixes=HUB_PREFIXES,
    ),
    GRANITE_SPEECH,
    replace(
        GRANITE_SPEECH,
        name="granite_speech_plus",
        config_class="GraniteSpeechPlusConfig",
        config=_granite_speech_plus,
    ),
)
