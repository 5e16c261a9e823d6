"""Qwen2.5-Omni and Qwen3-Omni, the thinker alone: pictures, videos and clips, M-RoPE.

Gives `SPECS`. The talker that speaks the answer is no part of them.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.families.audio import MEL_BINS, MULTIMODAL, whisper_extractor, whisper_sizes
from compat.zoo.sizes import HIDDEN, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NAMED_TOKENS = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
# Real patches: the processors resize every video to a number of pixels that stands in their code.
PATCH_2_5, PATCH_3 = 14, 16


def _token_ids(tokenizer: "PreTrainedTokenizerFast", image: str, video: str, audio: str) -> dict[str, int]:
    return {
        image: token_id(tokenizer, NAMED_TOKENS["image_token"]),
        video: token_id(tokenizer, NAMED_TOKENS["video_token"]),
        audio: token_id(tokenizer, NAMED_TOKENS["audio_token"]),
        "audio_start_token_id": token_id(tokenizer, NAMED_TOKENS["audio_bos_token"]),
        # No argument of the config class, but every checkpoint has it and the positions need it.
        "vision_start_token_id": token_id(tokenizer, NAMED_TOKENS["vision_bos_token"]),
    }


def _vision(patch: int, **overrides: Any) -> dict[str, Any]:
    return {
        "depth": TOWER_LAYERS,
        "hidden_size": TOWER_HIDDEN,
        "num_heads": TOWER_HEADS,
        "intermediate_size": 2 * TOWER_HIDDEN,
        "out_hidden_size": HIDDEN,
        "patch_size": patch,
        **overrides,
    }


def _qwen2_5(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}
    return {
        "text_config": text_sizes(tokenizer, rope_parameters=rope),
        # One layer with windows of 2 x 2 embeddings, one with full attention.
        "vision_config": _vision(PATCH_2_5, window_size=4 * PATCH_2_5, fullatt_block_indexes=[1]),
        # Attention in chunks of 0.4 s, shorter than most clips.
        "audio_config": whisper_sizes(n_window=20, output_dim=HIDDEN),
        "audio_end_token_id": token_id(tokenizer, NAMED_TOKENS["audio_eos_token"]),
        **_token_ids(tokenizer, "image_token_index", "video_token_index", "audio_token_index"),
    }


def _qwen3(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    return {
        "text_config": text_sizes(
            tokenizer, rope_parameters=rope, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=HIDDEN
        ),
        "vision_config": _vision(PATCH_3, num_position_embeddings=16, deepstack_visual_indexes=[0]),
        # One second a chunk of the convolution, which stands in the processor; attention over two.
        "audio_config": whisper_sizes(
            n_window=50, n_window_infer=200, conv_chunksize=4, downsample_hidden_size=MEL_BINS, output_dim=HIDDEN
        ),
        **_token_ids(tokenizer, "image_token_id", "video_token_id", "audio_token_id"),
    }


def _processor(tokenizer: "PreTrainedTokenizerFast", patch: int) -> dict[str, Any]:
    unit = (2 * patch) ** 2
    size = {"shortest_edge": 4 * unit, "longest_edge": 36 * unit}
    return {
        "image_processor": transformers.Qwen2VLImageProcessor(patch_size=patch, size=size),
        "video_processor": transformers.Qwen2VLVideoProcessor(patch_size=patch, size=size),
        "feature_extractor": whisper_extractor(),
        "tokenizer": tokenizer,
    }


def _qwen2_5_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return _processor(tokenizer, PATCH_2_5)


def _qwen3_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return _processor(tokenizer, PATCH_3)


_PLACEHOLDERS = {
    "image": "<|vision_bos|><|IMAGE|><|vision_eos|>",
    "video": "<|vision_bos|><|VIDEO|><|vision_eos|>",
    "audio": "<|audio_bos|><|AUDIO|><|audio_eos|>",
}
_SPECIAL_TOKENS = ("<|im_start|>", "<|im_end|>", *NAMED_TOKENS.values())

SPECS = (
    Spec(
        name="qwen2_5_omni_thinker",
        placeholders=_PLACEHOLDERS,
        special_tokens=_SPECIAL_TOKENS,
        named_tokens=NAMED_TOKENS,
        config_class="Qwen2_5OmniThinkerConfig",
        config=_qwen2_5,
        processor_class="Qwen2_5OmniProcessor",
        processor=_qwen2_5_processor,
        model_class=MULTIMODAL,
        woven="use_audio_in_video",
    ),
    Spec(
        name="qwen3_omni_moe_thinker",
        placeholders=_PLACEHOLDERS,
        special_tokens=_SPECIAL_TOKENS,
        named_tokens=NAMED_TOKENS,
        config_class="Qwen3OmniMoeThinkerConfig",
        config=_qwen3,
        processor_class="Qwen3OmniMoeProcessor",
        processor=_qwen3_processor,
        model_class=MULTIMODAL,
        woven="use_audio_in_video",
    ),
)
