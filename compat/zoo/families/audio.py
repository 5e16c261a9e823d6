"""Speech models over a Whisper-like window of fixed length: Audio Flamingo 3, Music Flamingo, GLM-ASR, Qwen2-Audio.

Gives `SPECS`. The window is two seconds in place of thirty, so that tests with longer clips stay quick. Not for models
whose extractor takes clips of any length (`compat.zoo.families.speech`).
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes, text_sizes_with_head
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MEL_BINS = 16
WINDOW_SECONDS = 2
POSITIONS = WINDOW_SECONDS * 50
"""Encoder positions of one window: frames of 10 ms, halved by a convolution."""
HUB_PREFIXES = {"language_model.model.model.": "language_model.model."}
"""transformers 5.19 applies one of its own renamings twice when it saves these models."""
SEQ2SEQ, MULTIMODAL = "AutoModelForSeq2SeqLM", "AutoModelForMultimodalLM"


def whisper_extractor() -> Any:
    """The extractor of log-mel frames, padded or cut to the window."""
    return transformers.WhisperFeatureExtractor(feature_size=MEL_BINS, chunk_length=WINDOW_SECONDS)


def whisper_sizes(**overrides: Any) -> dict[str, Any]:
    """Arguments of an encoder like Whisper's, in transformers' names for it."""
    return {
        "num_mel_bins": MEL_BINS,
        "encoder_layers": TOWER_LAYERS,
        "encoder_attention_heads": TOWER_HEADS,
        "encoder_ffn_dim": 2 * TOWER_HIDDEN,
        "d_model": TOWER_HIDDEN,
        "max_source_positions": POSITIONS,
        **overrides,
    }


def _audioflamingo3(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        "audio_config": {
            "model_type": "audioflamingo3_encoder",
            "num_mel_bins": MEL_BINS,
            "hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "max_source_positions": POSITIONS,
        },
        "audio_token_id": token_id(tokenizer, "<sound>"),
    }


def _musicflamingo(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        **_audioflamingo3(tokenizer),
        "audio_bos_token_id": token_id(tokenizer, "<|sound_bos|>"),
        "audio_eos_token_id": token_id(tokenizer, "<|sound_eos|>"),
    }


def _glmasr(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "audio_config": {
            "num_mel_bins": MEL_BINS,
            "hidden_size": TOWER_HIDDEN,
            # The connector takes four frames as one of this size.
            "intermediate_size": 4 * TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "max_position_embeddings": POSITIONS,
        },
        "audio_token_id": token_id(tokenizer, "<|pad|>"),
        "tie_word_embeddings": False,
    }


def _qwen2_audio(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        "audio_config": whisper_sizes(),
        "audio_token_index": token_id(tokenizer, "<|AUDIO|>"),
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {"feature_extractor": whisper_extractor(), "tokenizer": tokenizer}


SPECS = (
    Spec(
        name="audioflamingo3",
        placeholders={"audio": "<sound>"},
        special_tokens=("<|im_start|>", "<|im_end|>", "<sound>"),
        config_class="AudioFlamingo3Config",
        config=_audioflamingo3,
        processor_class="AudioFlamingo3Processor",
        processor=_processor,
        model_class=SEQ2SEQ,
        hub_prefixes=HUB_PREFIXES,
    ),
    Spec(
        name="musicflamingo",
        placeholders={"audio": "<sound>"},
        special_tokens=("<|im_start|>", "<|im_end|>", "<|sound_bos|>", "<|sound_eos|>", "<sound>"),
        config_class="MusicFlamingoConfig",
        config=_musicflamingo,
        processor_class="MusicFlamingoProcessor",
        processor=_processor,
        model_class=SEQ2SEQ,
        hub_prefixes=HUB_PREFIXES,
    ),
    Spec(
        name="glmasr",
        placeholders={"audio": "<|begin_of_audio|><|pad|><|end_of_audio|>"},
        special_tokens=("<|user|>", "<|assistant|>", "<|begin_of_audio|>", "<|end_of_audio|>", "<|pad|>"),
        config_class="GlmAsrConfig",
        config=_glmasr,
        processor_class="GlmAsrProcessor",
        processor=_processor,
        model_class=MULTIMODAL,
        hub_prefixes=HUB_PREFIXES,
        turns=Turns(user="<|user|>\n", user_end="", assistant="<|assistant|>\n", assistant_end=""),
    ),
    Spec(
        name="qwen2_audio",
        placeholders={"audio": "<|audio_bos|><|AUDIO|><|audio_eos|>"},
        special_tokens=("<|im_start|>", "<|im_end|>", "<|audio_bos|>", "<|audio_eos|>", "<|AUDIO|>"),
        config_class="Qwen2AudioConfig",
        config=_qwen2_audio,
        processor_class="Qwen2AudioProcessor",
        processor=_processor,
        model_class=MULTIMODAL,
        hub_prefixes=HUB_PREFIXES,
    ),
)
