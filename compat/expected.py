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
    "image": (
        *FOUNDATION,
        "deepseek_vl",
        "exaone4_5",
        "gemma3",
        "glm46v",
        "janus",
        "llava_next_video",
        "paddleocr_vl",
        "paligemma",
        "paligemma2",
        "perception_lm",
        "pixtral",
        "smolvlm",
        "video_llama_3",
        "vipllava",
    ),
    "video": (
        "exaone4_5",
        "glm46v",
        "glm4v",
        "internvl",
        "llava_next_video",
        "llava_onevision",
        "perception_lm",
        "qwen2_5_vl",
        "qwen2_vl",
        "video_llama_3",
    ),
    "audio": ("audioflamingo3", "fun_asr_nano", "gemma4", "glmasr", "granite_speech", "qwen2_audio"),
}
"""Modality to the families whose every parity case is right, as far as transformers itself answers it."""

NOT_YET: Mapping[str, str] = {
    "aria": "vLLM's reader of expert counts doesn't know `moe_topk` (the engine doesn't start)",
    "chameleon": "a config without `text_config`, for which vLLM chooses the text-only class",
    "gemma3n": "inputs for each layer of the text model aren't handed on (refused at start)",
    "gemma4_both_ways": "as gemma4_unified: 24 of 26 cases are right, the others generate a placeholder token",
    "gemma4_per_layer": "inputs for each layer of the text model aren't handed on (refused at start)",
    "gemma4_unified": "a placeholder token that the model itself generates, which transformers looks up as the pad token",
    "got_ocr2": "answers with pictures are right; transformers itself refuses text alone, which the parity run asks",
    "granite4_vision": "features of several levels aren't handed on (refused at start)",
    "idefics2": "its processor merges the tokens of touching pictures and edits spaces (refused at start)",
    "kimi_k25": "vLLM doesn't apply transformers' weight converters (the engine doesn't start)",
    "lfm2_vl": "short-convolution layers, which vLLM's Transformers backend doesn't run (the engine doesn't start)",
    "llama4": "expert weights stored transposed, which vLLM's Transformers backend doesn't load",
    "minicpmv4_6": "a picture's expansion holds its number in the prompt (refused at start)",
    "musicflamingo": "single clips are right; transformers refuses several, so they can't be compared",
    "ovis2": "its forward overwrites the tokens around a picture too (refused at start)",
    "phi4_multimodal": "a flat config, for which vLLM chooses the text-only class",
    "qwen2_5_omni_thinker": "transformers' AutoModel doesn't know its config (the engine doesn't start)",
    "qwen3_5": "linear-attention layers, which vLLM's Transformers backend doesn't run (the engine doesn't start)",
    "qwen3_asr": "vLLM puts a config class of its own in the place of transformers' (the engine doesn't start)",
    "qwen3_omni_moe_thinker": "transformers' AutoModel doesn't know its config (the engine doesn't start)",
    "qwen3_vl": "features of several levels aren't handed on (refused at start)",
    "qwen3_vl_moe": "features of several levels aren't handed on (refused at start)",
    "vibevoice_asr": "right with `vae_std` 0; real checkpoints add fresh noise, so there is no answer to compare with",
}
"""Family to what is missing, for those that were looked at."""
