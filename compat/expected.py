"""What is known of each family of the zoo: right on this package, or not yet and why.

Data for tests and for people; measured with vLLM 0.32 and transformers 5.19 in float32 against `generate`. A family moves
when a parity run says so.
"""

from collections.abc import Mapping

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
    "image": (*FOUNDATION, "deepseek_vl", "janus", "perception_lm", "pixtral", "smolvlm", "video_llama_3"),
    "video": ("glm4v", "internvl", "llava_onevision", "qwen2_5_vl", "qwen2_vl", "video_llama_3"),
    "audio": ("audioflamingo3", "gemma4", "glmasr", "granite_speech", "qwen2_audio"),
}
"""Modality to the families whose every parity case is right, as far as transformers itself answers it."""

NOT_YET: Mapping[str, str] = {
    "gemma3": "attention to pictures in both directions, which vLLM's CPU attention ignores (warned of at start)",
    "gemma3n": "inputs for each layer of the text model aren't handed on (refused at start)",
    "gemma4_per_layer": "inputs for each layer of the text model aren't handed on (refused at start)",
    "granite4_vision": "features of several levels aren't handed on (refused at start)",
    "idefics2": "its processor merges the tokens of touching pictures and edits spaces (refused at start)",
    "paligemma": "its processor moves the bos token behind the pictures (refused at start)",
    "paligemma2": "its processor moves the bos token behind the pictures (refused at start)",
    "qwen3_vl": "features of several levels aren't handed on (refused at start)",
    "qwen3_vl_moe": "features of several levels aren't handed on (refused at start)",
}
"""Family to what is missing, for those that were looked at; ours to mend, each of them."""
