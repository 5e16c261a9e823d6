"""Gemma 4: a tower over patches of a picture of any shape, a conformer over clips, sliding and full layers.

Gives `SPECS`: without per-layer inputs, and with them (an embedding table of its own for each layer). Pictures are seen
causally; `use_bidirectional_attention` is another matter.
"""

from typing import TYPE_CHECKING, Any

from compat.zoo.sizes import HEAD, PATCH, TOWER_HEADS, TOWER_HIDDEN, TOWER_LAYERS, text_sizes_with_head
from compat.zoo.spec import Spec, Turns
from compat.zoo.tokenizer import token_id, vocabulary_size
from compat.zoo.untyped import transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

MEL_BINS = 16
POOL = 2
"""Patches along a side of one embedding."""
PER_LAYER = 16
NAMED_TOKENS = {
    "image_token": "<|image|>",
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
}
TURNS = Turns(user="<|turn>user\n", user_end="<turn|>\n", assistant="<|turn>model\n", assistant_end="<turn|>\n")


PLACEHOLDERS = {"image": "<|image|>", "audio": "<|audio|>", "video": "<|video|>"}
SPECIAL_TOKENS = ("<|turn>", "<turn|>", *NAMED_TOKENS.values(), "<|video|>")


def text_arguments(tokenizer: "PreTrainedTokenizerFast", **overrides: Any) -> dict[str, Any]:
    """Arguments of the text model of all Gemma 4."""
    rope = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
    }
    return text_sizes_with_head(
        tokenizer,
        # Twice the head size in full layers, as in real checkpoints.
        global_head_dim=2 * HEAD,
        # Shorter than most prompts, so that the window matters.
        sliding_window=32,
        layer_types=["sliding_attention", "full_attention"],
        rope_parameters=rope,
        use_bidirectional_attention=None,
        **overrides,
    )


def token_ids(tokenizer: "PreTrainedTokenizerFast") -> dict[str, int]:
    """The ids that all configs of Gemma 4 name."""
    return {
        "image_token_id": token_id(tokenizer, NAMED_TOKENS["image_token"]),
        "boi_token_id": token_id(tokenizer, NAMED_TOKENS["boi_token"]),
        "eoi_token_id": token_id(tokenizer, NAMED_TOKENS["eoi_token"]),
        "video_token_id": token_id(tokenizer, "<|video|>"),
        "audio_token_id": token_id(tokenizer, NAMED_TOKENS["audio_token"]),
        "boa_token_id": token_id(tokenizer, NAMED_TOKENS["boa_token"]),
        "eoa_token_index": token_id(tokenizer, NAMED_TOKENS["eoa_token"]),
    }


def _config(tokenizer: "PreTrainedTokenizerFast", per_layer: int) -> dict[str, Any]:
    return {
        "text_config": text_arguments(
            tokenizer, hidden_size_per_layer_input=per_layer, vocab_size_per_layer_input=vocabulary_size(tokenizer)
        ),
        "vision_config": {
            "hidden_size": TOWER_HIDDEN,
            "intermediate_size": 2 * TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            "num_key_value_heads": TOWER_HEADS,
            "head_dim": TOWER_HIDDEN // TOWER_HEADS,
            "patch_size": PATCH,
            "pooling_kernel_size": POOL,
            "position_embedding_size": 256,
        },
        "audio_config": {
            "hidden_size": TOWER_HIDDEN,
            "num_hidden_layers": TOWER_LAYERS,
            "num_attention_heads": TOWER_HEADS,
            # The first has to be the number of mel bins.
            "subsampling_conv_channels": [MEL_BINS, 8],
            "output_proj_dims": TOWER_HIDDEN,
        },
        **token_ids(tokenizer),
        "tie_word_embeddings": False,
    }


def _plain(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return _config(tokenizer, per_layer=0)


def _per_layer(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    return _config(tokenizer, per_layer=PER_LAYER)


def _vision(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    """Sliding layers attend to a picture both ways; its 70 embeddings are more than their window."""
    config = _plain(tokenizer)
    config["text_config"]["use_bidirectional_attention"] = "vision"
    return config


def _processor(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    # 70 embeddings a picture and frame: the smallest that these processors take.
    sizes = {"patch_size": PATCH, "pooling_kernel_size": POOL, "max_soft_tokens": 70}
    return {
        "feature_extractor": transformers.Gemma4AudioFeatureExtractor(feature_size=MEL_BINS),
        "image_processor": transformers.Gemma4ImageProcessor(**sizes),
        "video_processor": transformers.Gemma4VideoProcessor(**sizes),
        "tokenizer": tokenizer,
        "image_seq_length": 70,
    }


def _spec(name: str, config: Any) -> Spec:
    return Spec(
        name=name,
        placeholders=PLACEHOLDERS,
        special_tokens=SPECIAL_TOKENS,
        named_tokens=NAMED_TOKENS,
        config_class="Gemma4Config",
        config=config,
        processor_class="Gemma4Processor",
        processor=_processor,
        turns=TURNS,
        bos="<bos>",
    )


SPECS = (_spec("gemma4", _plain), _spec("gemma4_per_layer", _per_layer), _spec("gemma4_vision", _vision))
