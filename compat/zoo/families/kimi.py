"""Kimi K2.5: MoonViT over patches of a picture of any size, DeepSeek V3 with latent attention and experts.

Gives `SPECS`. Pictures only: transformers 5.19 cannot run the family's videos.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HEAD, HIDDEN, LONGEST_EDGE, PATCH, TOWER_HIDDEN, text_sizes, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, VIDEO = "<|media_pad|>", "<|kimi_k25_video_placeholder|>"
BEGIN, CONTENT, END = "<|media_begin|>", "<|media_content|>", "<|media_end|>"
SIDE = LONGEST_EDGE // PATCH
"""Patches along the longest side of a picture."""


def _config(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {
            "model_type": "deepseek_v3",
            **text_sizes(tokenizer, num_key_value_heads=2),
            "q_lora_rank": HEAD,
            "kv_lora_rank": HEAD,
            "qk_rope_head_dim": HEAD,
            "qk_nope_head_dim": HEAD,
            "v_head_dim": 2 * HEAD,
            # One dense layer, one with experts.
            "first_k_dense_replace": 1,
            "moe_intermediate_size": HIDDEN,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 1,
            "topk_group": 1,
            "num_mtp_layers": 0,
        },
        "vision_config": {
            **tower_sizes(),
            "pos_emb_height": SIDE,
            "pos_emb_width": SIDE,
        },
        "projection_hidden_size": TOWER_HIDDEN,
        "image_token_id": token_id(tokenizer, IMAGE),
        "video_token_id": token_id(tokenizer, VIDEO),
        "vision_start_token_id": token_id(tokenizer, BEGIN),
        "vision_end_token_id": token_id(tokenizer, END),
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    size = {"max_height": SIDE, "max_width": SIDE}
    return {
        "image_processor": transformers.Kimi_K25ImageProcessor(patch_size=PATCH, size=size, max_patches=SIDE**2),
        "video_processor": transformers.Kimi_K25VideoProcessor(patch_size=PATCH, size=size, max_patches=SIDE**2),
        "tokenizer": tokenizer,
    }


SPECS = (
    Spec(
        name="kimi_k25",
        placeholders={"image": f"{BEGIN}image{CONTENT}{IMAGE}{END}"},
        special_tokens=(
            *("<|im_user|>", "<|im_assistant|>", "<|im_middle|>", "<|im_end|>"),
            *(BEGIN, CONTENT, END, IMAGE, VIDEO),
        ),
        config_class="Kimi_K25Config",
        config=_config,
        processor_class="Kimi_K25Processor",
        processor=_processor,
        turns=Turns(
            user="<|im_user|>user<|im_middle|>",
            user_end="<|im_end|>",
            assistant="<|im_assistant|>assistant<|im_middle|>",
            assistant_end="<|im_end|>",
        ),
        # With seeds 0 and 1 the model answers with a picture's own token, which transformers refuses in the next step.
        seed=2,
    ),
)
