"""What is known of each family of the zoo: right on this package, or not yet and why.

Data for tests and for people; measured with vLLM 0.32 and transformers 5.19 in float32 against `generate`. A family moves
when a parity run says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version

FOUNDATION = (
    "aya_vision",
    "cohere2_vision",
    "glm4v",
    "idefics3",
    "internvl",
    "llava",
    "llava_next",
    "llava_onevision",
    "mistral3",
    "qwen2_5_vl",
    "qwen2_vl",
)
"""The families of the first slice."""

RIGHT: Mapping[str, tuple[str, ...]] = {
    "image": (
        *FOUNDATION,
        "aria",
        "chameleon",
        "cohere_compass",
        "deepseek_vl",
        "deepseek_vl_hybrid",
        "exaone4_5",
        "fuyu",
        "gemma3",
        "gemma3n",
        "gemma4",
        "gemma4_per_layer",
        "gemma4_unified",
        "gemma4_vision",
        "glm46v",
        "glm4v_moe",
        "glm_ocr",
        "got_ocr2",
        "granite4_vision",
        "hunyuan_vl",
        "idefics2",
        "janus",
        "kimi_k25",
        "lighton_ocr",
        "llama4",
        "llava_next_video",
        "ovis2",
        "paddleocr_vl",
        "paligemma",
        "paligemma2",
        "perception_lm",
        "phi4_multimodal",
        "pixtral",
        "qwen2_5_omni",
        "qwen2_5_omni_thinker",
        "qwen3_omni_moe",
        "qwen3_omni_moe_thinker",
        "qwen3_vl",
        "qwen3_vl_moe",
        "smolvlm",
        "video_llama_3",
        "video_llava",
        "vipllava",
    ),
    "video": (
        "cohere_compass",
        "exaone4_5",
        "gemma4",
        "gemma4_per_layer",
        "gemma4_unified",
        "gemma4_vision",
        "glm46v",
        "glm4v",
        "glm4v_moe",
        "glm_ocr",
        "internvl",
        "llava_next_video",
        "llava_onevision",
        "perception_lm",
        "qwen2_5_omni",
        "qwen2_5_omni_thinker",
        "qwen2_5_vl",
        "qwen2_vl",
        "qwen3_omni_moe",
        "qwen3_omni_moe_thinker",
        "qwen3_vl",
        "qwen3_vl_moe",
        "smolvlm",
        "video_llama_3",
        "video_llava",
    ),
    "audio": (
        "audioflamingo3",
        "fun_asr_nano",
        "gemma3n",
        "gemma4",
        "gemma4_per_layer",
        "gemma4_unified",
        "gemma4_vision",
        "glmasr",
        "granite_speech",
        "granite_speech_plus",
        "musicflamingo",
        "phi4_multimodal_audio",
        "qwen2_5_omni",
        "qwen2_5_omni_thinker",
        "qwen2_audio",
        "qwen3_asr",
        "qwen3_omni_moe",
        "qwen3_omni_moe_thinker",
        "vibevoice_asr",
    ),
}
"""Modality to the families whose every parity case is right, as far as transformers itself answers it. VibeVoice's real
checkpoints add fresh noise to every clip (`vae_std` of its config): the zoo's has it at 0, since noise has no right answer."""

NOT_YET: Mapping[str, str] = {
    "lfm2_vl": "short-convolution layers, which vLLM's Transformers backend doesn't run (the engine doesn't start)",
    "minicpmv4_6": "a picture's expansion holds its number in the prompt (refused at start)",
    "qianfan_ocr": "its chat template writes `<image>`, a word that its processor turns into another token before it counts "
    "items, so that no placeholder is found in the prompt (refused with the request)",
    "qwen3_5": "linear-attention layers, which vLLM's Transformers backend doesn't run (the engine doesn't start)",
}
"""Family to what is missing, for those that were looked at."""


@dataclass(frozen=True, slots=True)
class Need:
    """A transformers release from which on a family is served."""

    transformers: Version
    reason: str
    """Why not before."""


EDITS = "its processor edits the prompt, which can be told apart from expansions only where it reports offsets"

NEEDS: Mapping[str, Need] = {
    "chameleon": Need(Version("5.15"), EDITS),
    "fuyu": Need(
        Version("5.16"), "its processor reports offsets from there on, and nothing else tells what it puts in front"
    ),
    "paligemma": Need(Version("5.15"), EDITS),
    "paligemma2": Need(Version("5.15"), EDITS),
}
"""Families that are refused at start on older releases."""
