"""GLM-4.1V, GLM-4.5V, GLM-4.6V and GLM-OCR: a tower over patches of a picture of any size, M-RoPE over half of each head.

Gives `SPECS`. Pictures and frames of a video share one placeholder id.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HIDDEN, LONGEST_EDGE, PATCH, TILE, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, VIDEO = "<|image|>", "<|video|>"
BEGIN_IMAGE, END_IMAGE = "<|begin_of_image|>", "<|end_of_image|>"
BEGIN_VIDEO, END_VIDEO = "<|begin_of_video|>", "<|end_of_video|>"
UNIT = 2 * PATCH


def _glm4v(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    rope = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [2, 3, 3],
    }
    return {
        "text_config": text_sizes(tokenizer, rope_parameters=rope),
        "vision_config": {
            "depth": TOWER_LAYERS,
            "hidden_size": TOWER_HIDDEN,
            "num_heads": TOWER_HEADS,
            "image_size": TILE,
            "patch_size": PATCH,
            "out_hidden_size": HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
        },
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "image_start_token_id": token_id(tokenizer, BEGIN_IMAGE),
        "image_end_token_id": token_id(tokenizer, END_IMAGE),
        "video_start_token_id": token_id(tokenizer, BEGIN_VIDEO),
        "video_end_token_id": token_id(tokenizer, END_VIDEO),
    }


def _glm4v_moe(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    config = _glm4v(tokenizer)
    # One dense layer, then one with experts.
    config["text_config"] |= {
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": HIDDEN,
        "first_k_dense_replace": 1,
    }
    return config


def _glm_ocr(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    config = _glm4v(tokenizer)
    config["text_config"]["rope_parameters"] |= {"partial_rotary_factor": 1.0, "mrope_section": [4, 6, 6]}
    config["text_config"]["head_dim"] = HIDDEN // 2
    return config


def _glm4v_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"shortest_edge": 4 * UNIT**2, "longest_edge": 2 * LONGEST_EDGE**2}
    return {
        "image_processor": transformers.Glm4vImageProcessor(patch_size=PATCH, size=size),
        "video_processor": transformers.Glm4vVideoProcessor(patch_size=PATCH, size=size),
        "tokenizer": tokenizer,
    }


def _glm46v_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"shortest_edge": 4 * UNIT**2, "longest_edge": 2 * LONGEST_EDGE**2}
    return {
        "image_processor": transformers.Glm46VImageProcessor(patch_size=PATCH, size=size),
        "video_processor": transformers.Glm46VVideoProcessor(patch_size=PATCH, size=size),
        "tokenizer": tokenizer,
    }


GLM4V = Spec(
    name="glm4v",
    placeholders={
        "image": f"{BEGIN_IMAGE}{IMAGE}{END_IMAGE}",
        "video": f"{BEGIN_VIDEO}{VIDEO}{END_VIDEO}",
    },
    special_tokens=(
        *("[gMASK]", "<sop>", "<|user|>", "<|assistant|>"),
        *(BEGIN_IMAGE, END_IMAGE, BEGIN_VIDEO, END_VIDEO, IMAGE, VIDEO),
    ),
    config_class="Glm4vConfig",
    config=_glm4v,
    processor_class="Glm4vProcessor",
    processor=_glm4v_processor,
    turns=Turns(user="<|user|>\n", user_end="", assistant="<|assistant|>\n", assistant_end=""),
)

SPECS = (
    GLM4V,
    replace(
        GLM4V,
        name="glm46v",
        config_class="Glm46VConfig",
        processor_class="Glm46VProcessor",
        processor=_glm46v_processor,
    ),
    replace(
        GLM4V,
        name="glm4v_moe",
        config_class="Glm4vMoeConfig",
        config=_glm4v_moe,
    ),
    replace(
        GLM4V,
        name="glm_ocr",
        config_class="GlmOcrConfig",
        config=_glm_ocr,
        processor_class="Glm46VProcessor",
        processor=_glm46v_processor,
    ),
)
