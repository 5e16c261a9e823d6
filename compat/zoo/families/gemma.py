"""Gemma 3 and both PaliGemmas: SigLIP over one tile, Gemma's text model with attention both ways inside a picture.

Gives `SPECS`. Gemma 3 puts blank lines around a picture, PaliGemma a bos and a newline after the last one.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HEAD, HIDDEN, PATCH, TILE, text_sizes_with_head, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

BEGIN, END, SOFT = "<start_of_image>", "<end_of_image>", "<image_soft_token>"
TURN, TURN_END = "<start_of_turn>", "<end_of_turn>"
POOLED = 4
"""Embeddings of a picture of Gemma 3: 4 x 4 patches are pooled to 2 x 2."""
PALIGEMMA_IMAGE = "<image>"
BOS = "<bos>"
SIZE = {"height": TILE, "width": TILE}


def _gemma3(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    text = text_sizes_with_head(tokenizer)
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    text |= {
        "query_pre_attn_scalar": HEAD,
        # Shorter than most prompts, so that the window matters.
        "sliding_window": 32,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {"sliding_attention": rope, "full_attention": rope},
    }
    return {
        "text_config": text,
        "vision_config": {"vision_use_head": False, **tower_sizes()},
        "mm_tokens_per_image": POOLED,
        "boi_token_index": token_id(tokenizer, BEGIN),
        "eoi_token_index": token_id(tokenizer, END),
        "image_token_index": token_id(tokenizer, SOFT),
        "tie_word_embeddings": False,
    }


def _gemma3_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Gemma3ImageProcessor(size=SIZE),
        "tokenizer": tokenizer,
        "image_seq_length": POOLED,
    }


def _paligemma(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "text_config": {"model_type": "gemma", **text_sizes_with_head(tokenizer)},
        "vision_config": {"model_type": "siglip_vision_model", "vision_use_head": False, **tower_sizes()},
        "image_token_index": token_id(tokenizer, PALIGEMMA_IMAGE),
        "projection_dim": HIDDEN,
        "hidden_size": HIDDEN,
        "tie_word_embeddings": False,
    }


def _paligemma2(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    # Shorter than most prompts, so that the window matters.
    layers = {"sliding_window": 32, "layer_types": ["sliding_attention", "full_attention"]}
    text = {"model_type": "gemma2", **text_sizes_with_head(tokenizer), "query_pre_attn_scalar": HEAD, **layers}
    return {**_paligemma(tokenizer), "text_config": text}


def _paligemma_processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    image_processor = transformers.SiglipImageProcessor(size=SIZE)
    # Saved with the processor; not an argument of the image processor.
    image_processor.image_seq_length = (TILE // PATCH) ** 2
    return {"image_processor": image_processor, "tokenizer": tokenizer}


SPECS = (
    Spec(
        name="gemma3",
        placeholders={"image": BEGIN},
        special_tokens=(TURN, TURN_END, BEGIN, END, SOFT),
        named_tokens={"boi_token": BEGIN, "eoi_token": END, "image_token": SOFT},
        config_class="Gemma3Config",
        config=_gemma3,
        processor_class="Gemma3Processor",
        processor=_gemma3_processor,
        turns=Turns(
            user=f"{TURN}user\n",
            user_end=f"{TURN_END}\n",
            assistant=f"{TURN}model\n",
            assistant_end=f"{TURN_END}\n",
        ),
        bos=BOS,
    ),
    Spec(
        name="paligemma",
        placeholders={"image": PALIGEMMA_IMAGE},
        special_tokens=(BOS, PALIGEMMA_IMAGE),
        # Its tokenizer puts no bos before a text: the processor does, behind the last picture.
        named_tokens={"image_token": PALIGEMMA_IMAGE, "bos_token": BOS},
        config_class="PaliGemmaConfig",
        config=_paligemma,
        processor_class="PaliGemmaProcessor",
        processor=_paligemma_processor,
        turns=Turns(user="", user_end="", assistant="", assistant_end=""),
    ),
    Spec(
        name="paligemma2",
        placeholders={"image": PALIGEMMA_IMAGE},
        special_tokens=(BOS, PALIGEMMA_IMAGE),
        # Its tokenizer puts no bos before a text: the processor does, behind the last picture.
        named_tokens={"image_token": PALIGEMMA_IMAGE, "bos_token": BOS},
        config_class="PaliGemmaConfig",
        config=_paligemma2,
        processor_class="PaliGemmaProcessor",
        processor=_paligemma_processor,
        turns=Turns(user="", user_end="", assistant="", assistant_end=""),
    ),
)
