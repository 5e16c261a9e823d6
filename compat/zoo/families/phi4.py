"""Phi-4-multimodal: SigLIP over tiles with a mask, a conformer over clips, one flat config.

Gives `SPECS`. A picture's whole view is always 16 x 16 embeddings: that number stands in the processor's code, so patches
are small here and a picture takes hundreds of tokens.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compat.zoo.families.audio import MEL_BINS, MULTIMODAL
from compat.zoo.sizes import TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes, tower_sizes
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

IMAGE, AUDIO = "<|image|>", "<|audio|>"
SMALL_PATCH = 2
SMALL_TILE = 32 * SMALL_PATCH
"""Pixels along a side of one tile: 32 x 32 patches, of which 2 x 2 make an embedding."""


def _phi4_multimodal(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        **text_sizes(tokenizer, original_max_position_embeddings=2048),
        "vision_config": {
            **tower_sizes(image_size=SMALL_TILE, patch_size=SMALL_PATCH),
            "crop_size": SMALL_TILE,
            "image_token_id": token_id(tokenizer, IMAGE),
        },
        "audio_config": {
            "hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_blocks": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "ext_pw_out_channel": TOWER_HIDDEN,
            "depthwise_separable_out_channel": TOWER_HIDDEN,
            "nemo_conv_channels": 8,
            "input_size": MEL_BINS,
            "audio_token_id": token_id(tokenizer, AUDIO),
        },
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "image_processor": transformers.Phi4MultimodalImageProcessor(
            size={"height": SMALL_TILE, "width": SMALL_TILE}, patch_size=SMALL_PATCH, dynamic_hd=4
        ),
        "audio_processor": transformers.Phi4MultimodalFeatureExtractor(feature_size=MEL_BINS),
        "tokenizer": tokenizer,
    }


def _spec(name: str, placeholders: Mapping[str, str]) -> Spec:
    return Spec(
        name=name,
        placeholders=placeholders,
        special_tokens=("<|user|>", "<|assistant|>", "<|end|>", IMAGE, AUDIO),
        named_tokens={"image_token": IMAGE, "audio_token": AUDIO},
        config_class="Phi4MultimodalConfig",
        config=_phi4_multimodal,
        processor_class="Phi4MultimodalProcessor",
        processor=_processor,
        model_class=MULTIMODAL,
        # With the usual spread a clip hardly changes the answer.
        std=0.2,
        turns=Turns(user="<|user|>", user_end="<|end|>", assistant="<|assistant|>", assistant_end="<|end|>"),
    )


# One modality each: beside a picture a clip goes through another projector, so that both at once are refused at start.
SPECS = (_spec("phi4_multimodal", {"image": IMAGE}), _spec("phi4_multimodal_audio", {"audio": AUDIO}))
