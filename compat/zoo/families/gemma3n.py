"""Gemma 3n: a convolutional tower from timm over pictures, a conformer over clips, per-layer inputs.

Gives `SPECS`. Both expansions have a fixed number of embeddings between blank lines, and the tokens that end them have
embeddings in tables of their own. Building it needs timm.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes_with_head
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id, vocabulary_size
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MEL_BINS = 16
PICTURE = 128
"""Pixels along a side; the tower makes one embedding of 32 x 32."""
IMAGE_TOKENS = (PICTURE // 32) ** 2
TIMM_TOWER, TIMM_WIDTH = "test_resnet", 96
"""The tower that timm itself tests with, and its number of channels."""
AUDIO_TOKENS = 60
"""Embeddings of a clip, however short; one for each 160 ms of the longest, here 9.6 s."""
NAMED_TOKENS = {
    "image_token": "<image_soft_token>",
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "audio_token": "<audio_soft_token>",
    "boa_token": "<start_of_audio>",
    "eoa_token": "<end_of_audio>",
}


def _gemma3n(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    first_image = token_id(tokenizer, NAMED_TOKENS["eoi_token"])
    first_audio = token_id(tokenizer, NAMED_TOKENS["eoa_token"])
    rope = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
    }
    return {
        "text_config": text_sizes_with_head(
            tokenizer,
            # Shorter than most prompts, so that the window matters.
            sliding_window=32,
            layer_types=["sliding_attention", "full_attention"],
            rope_parameters=rope,
            hidden_size_per_layer_input=16,
            vocab_size_per_layer_input=first_image,
            altup_num_inputs=2,
            num_kv_shared_layers=0,
            laurel_rank=8,
            activation_sparsity_pattern=[0.95, 0.0],
        ),
        "vision_config": {
            "architecture": TIMM_TOWER,
            "hidden_size": TIMM_WIDTH,
            "vocab_offset": first_image,
            "vocab_size": first_audio - first_image,
        },
        "audio_config": {
            "input_feat_size": MEL_BINS,
            "hidden_size": TOWER_HIDDEN,
            "conf_num_attention_heads": TOWER_HEADS,
            "conf_num_hidden_layers": TOWER_LAYERS,
            "sscp_conv_channel_size": [8, 4],
            "vocab_offset": first_audio,
            "vocab_size": vocabulary_size(tokenizer) - first_audio,
        },
        "audio_soft_tokens_per_image": AUDIO_TOKENS,
        "vision_soft_tokens_per_image": IMAGE_TOKENS,
        "image_token_id": token_id(tokenizer, NAMED_TOKENS["image_token"]),
        "boi_token_id": token_id(tokenizer, NAMED_TOKENS["boi_token"]),
        "eoi_token_id": first_image,
        "audio_token_id": token_id(tokenizer, NAMED_TOKENS["audio_token"]),
        "boa_token_id": token_id(tokenizer, NAMED_TOKENS["boa_token"]),
        "eoa_token_id": first_audio,
        "tie_word_embeddings": False,
    }


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return {
        "feature_extractor": transformers.Gemma3nAudioFeatureExtractor(feature_size=MEL_BINS),
        "image_processor": transformers.SiglipImageProcessor(size={"height": PICTURE, "width": PICTURE}),
        "tokenizer": tokenizer,
        "audio_seq_length": AUDIO_TOKENS,
        "image_seq_length": IMAGE_TOKENS,
    }


SPECS = (
    Spec(
        name="gemma3n",
        placeholders={"image": "<image_soft_token>", "audio": "<audio_soft_token>"},
        # The tables for pictures and clips begin with the token that ends each.
        special_tokens=(
            *("<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<start_of_audio>"),
            *("<end_of_image>", "<image_soft_token>", "<end_of_audio>", "<audio_soft_token>"),
        ),
        named_tokens=NAMED_TOKENS,
        config_class="Gemma3nConfig",
        config=_gemma3n,
        processor_class="Gemma3nProcessor",
        processor=_processor,
        requires=("timm",),
        turns=Turns(
            user="<start_of_turn>user\n",
            user_end="<end_of_turn>\n",
            assistant="<start_of_turn>model\n",
            assistant_end="<end_of_turn>\n",
        ),
        bos="<bos>",
    ),
)
