"""LLaVA, VipLLaVA, LLaVA-NeXT, its video kind, LLaVA-OneVision and Video-LLaVA: CLIP or SigLIP over tiles of a fixed size.

Gives `SPECS`. The first two cut every picture to one tile; the others add tiles that depend on the picture's shape.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import PATCH, TILE, text_sizes, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, VIDEO = "<image>", "<video>"
GRID = [[TILE, 2 * TILE], [2 * TILE, TILE], [2 * TILE, 2 * TILE], [3 * TILE, TILE], [TILE, 3 * TILE]]
"""Heights and widths that a picture may be resized to."""
VICUNA = Turns(user="USER: ", user_end=" ", assistant="ASSISTANT:", assistant_end="</s>")


def _llava(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "clip_vision_model", "projection_dim": 32, **tower_sizes()},
        "image_token_index": token_id(tokenizer, IMAGE),
        "image_seq_length": (TILE // PATCH) ** 2,
        "vision_feature_select_strategy": "default",
        "vision_feature_layer": -2,
    }


def _llava_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.CLIPImageProcessor(
            size={"shortest_edge": TILE}, crop_size={"height": TILE, "width": TILE}
        ),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    }


def _vipllava(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "clip_vision_model", "projection_dim": 32, **tower_sizes()},
        "image_token_index": token_id(tokenizer, IMAGE),
        "image_seq_length": (TILE // PATCH) ** 2,
        # Features of two layers side by side.
        "vision_feature_layers": [-2, -1],
        "tie_word_embeddings": False,
    }


def _llava_next(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "mistral", "sliding_window": None, **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "clip_vision_model", "projection_dim": 32, **tower_sizes()},
        "image_token_index": token_id(tokenizer, IMAGE),
        "image_seq_length": (TILE // PATCH) ** 2,
        "image_grid_pinpoints": GRID,
        "vision_feature_select_strategy": "default",
        "vision_feature_layer": -2,
    }


def _llava_next_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.LlavaNextImageProcessor(
            size={"shortest_edge": TILE},
            crop_size={"height": TILE, "width": TILE},
            image_grid_pinpoints=GRID,
        ),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    }


def _llava_next_video(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        **_llava_next(tokenizer),
        "video_token_index": token_id(tokenizer, VIDEO),
        "video_seq_length": (TILE // PATCH // 2) ** 2,
        "tie_word_embeddings": False,
    }


def _llava_next_video_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        **_llava_next_processor(tokenizer),
        "video_processor": transformers.LlavaNextVideoVideoProcessor(
            size={"shortest_edge": TILE}, crop_size={"height": TILE, "width": TILE}
        ),
    }


def _video_llava(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "llama", **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "clip_vision_model", "projection_dim": 32, **tower_sizes()},
        "image_token_index": token_id(tokenizer, IMAGE),
        "video_token_index": token_id(tokenizer, VIDEO),
        "image_seq_length": (TILE // PATCH) ** 2,
        "vision_feature_select_strategy": "default",
        "vision_feature_layer": -2,
    }


def _video_llava_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    sizes = {"size": {"shortest_edge": TILE}, "crop_size": {"height": TILE, "width": TILE}}
    return {
        "image_processor": transformers.VideoLlavaImageProcessor(**sizes),
        "video_processor": transformers.VideoLlavaVideoProcessor(**sizes),
        "tokenizer": tokenizer,
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    }


def _llava_onevision(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "qwen2", **text_sizes(tokenizer)},
        "vision_config": {"model_type": "siglip_vision_model", "vision_use_head": False, **tower_sizes()},
        "image_token_index": token_id(tokenizer, IMAGE),
        "video_token_index": token_id(tokenizer, VIDEO),
        "image_grid_pinpoints": GRID,
        "vision_aspect_ratio": "anyres_max_9",
    }


def _llava_onevision_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"height": TILE, "width": TILE}
    return {
        "image_processor": transformers.LlavaOnevisionImageProcessor(size=size, image_grid_pinpoints=GRID),
        "video_processor": transformers.LlavaOnevisionVideoProcessor(size=size),
        "tokenizer": tokenizer,
        "num_image_tokens": (TILE // PATCH) ** 2,
        "vision_feature_select_strategy": "full",
        "vision_aspect_ratio": "anyres_max_9",
    }


SPECS = (
    Spec(
        name="llava",
        placeholders={"image": IMAGE},
        special_tokens=("</s>", IMAGE),
        config_class="LlavaConfig",
        config=_llava,
        processor_class="LlavaProcessor",
        processor=_llava_processor,
        turns=VICUNA,
        bos="<s>",
    ),
    Spec(
        name="llava_next",
        placeholders={"image": IMAGE},
        special_tokens=("</s>", IMAGE),
        config_class="LlavaNextConfig",
        config=_llava_next,
        processor_class="LlavaNextProcessor",
        processor=_llava_next_processor,
        turns=Turns(user="[INST] ", user_end=" [/INST]", assistant="", assistant_end="</s>"),
        bos="<s>",
    ),
    Spec(
        name="llava_next_video",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=("</s>", IMAGE, VIDEO),
        config_class="LlavaNextVideoConfig",
        config=_llava_next_video,
        processor_class="LlavaNextVideoProcessor",
        processor=_llava_next_video_processor,
        turns=VICUNA,
        bos="<s>",
    ),
    Spec(
        name="vipllava",
        placeholders={"image": IMAGE},
        special_tokens=("</s>", IMAGE),
        config_class="VipLlavaConfig",
        config=_vipllava,
        processor_class="LlavaProcessor",
        processor=_llava_processor,
        turns=VICUNA,
        bos="<s>",
    ),
    Spec(
        name="llava_onevision",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=("<|im_start|>", "<|im_end|>", IMAGE, VIDEO),
        config_class="LlavaOnevisionConfig",
        config=_llava_onevision,
        processor_class="LlavaOnevisionProcessor",
        processor=_llava_onevision_processor,
    ),
    Spec(
        name="video_llava",
        placeholders={"image": IMAGE, "video": VIDEO},
        special_tokens=("</s>", IMAGE, VIDEO),
        config_class="VideoLlavaConfig",
        config=_video_llava,
        processor_class="VideoLlavaProcessor",
        processor=_video_llava_processor,
        turns=VICUNA,
        bos="<s>",
    ),
)
