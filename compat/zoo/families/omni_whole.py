"""Qwen2.5-Omni and Qwen3-Omni as they are published: the thinker, the talker that speaks its answer, and what makes sound of that.

Gives `SPECS`. What answers in text is the thinker (`compat.zoo.families.omni`); the rest is there to be left alone.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

from compat.zoo.families import omni
from compat.zoo.sizes import HEAD, HIDDEN, text_sizes

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_THINKERS = {spec.name: spec for spec in omni.SPECS}
_QWEN2_5, _QWEN3 = _THINKERS["qwen2_5_omni_thinker"], _THINKERS["qwen3_omni_moe_thinker"]


def _qwen2_5(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    thinker = _QWEN2_5.config(tokenizer)
    rope = thinker["text_config"]["rope_parameters"]
    return {
        "thinker_config": thinker,
        "talker_config": {
            **text_sizes(tokenizer, rope_parameters=rope, num_hidden_layers=1),
            "head_dim": HEAD,
            "embedding_size": HIDDEN,
        },
        "token2wav_config": {
            "dit_config": {
                "hidden_size": 32,
                "num_hidden_layers": 1,
                "num_attention_heads": 1,
                "head_dim": 32,
                "emb_dim": 16,
                "mel_dim": 16,
                "num_embeds": 32,
                "look_ahead_layers": [0],
                "look_backward_layers": [0],
                "enc_emb_dim": 16,
                "enc_dim": 16,
                "enc_channels": [16, 16, 16, 16, 48],
                "enc_attention_channels": 8,
                "enc_se_channels": 8,
            },
            "bigvgan_config": {"mel_dim": 16, "upsample_initial_channel": 64},
        },
    }


def _qwen3(tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    thinker = _QWEN3.config(tokenizer)
    speech = {"num_hidden_layers": 1, "hidden_size": HIDDEN, "intermediate_size": HIDDEN, "head_dim": HEAD}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    return {
        "thinker_config": thinker,
        "talker_config": {
            "thinker_hidden_size": HIDDEN,
            "accept_hidden_layer": 1,
            # No argument of the config class, but every checkpoint has it and the talker needs it.
            "spatial_merge_size": 2,
            "num_code_groups": 2,
            "text_config": {
                **speech,
                **heads,
                "vocab_size": 64,
                "num_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": HIDDEN,
                "shared_expert_intermediate_size": HIDDEN,
                "rope_parameters": thinker["text_config"]["rope_parameters"],
            },
            "code_predictor_config": {**speech, **heads, "vocab_size": 64, "num_code_groups": 2},
        },
        "code2wav_config": {
            "codebook_size": 64,
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "num_hidden_layers": 1,
            "num_quantizers": 2,
            "decoder_dim": 32,
        },
    }


SPECS = (
    dataclasses.replace(
        _QWEN2_5,
        name="qwen2_5_omni",
        config_class="Qwen2_5OmniConfig",
        config=_qwen2_5,
        model_class="Qwen2_5OmniForConditionalGeneration",
        answers_class="Qwen2_5OmniThinkerForConditionalGeneration",
    ),
    dataclasses.replace(
        _QWEN3,
        name="qwen3_omni_moe",
        config_class="Qwen3OmniMoeConfig",
        config=_qwen3,
        model_class="Qwen3OmniMoeForConditionalGeneration",
        answers_class="Qwen3OmniMoeThinkerForConditionalGeneration",
    ),
)
