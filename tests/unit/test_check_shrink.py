"""`hf_backend.check.shrink`: what must stay together stays together, whatever a config's sizes are."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hf_backend.check import shrink

QWEN2_VL_7B: dict[str, Any] = {
    "model_type": "qwen2_vl",
    "image_token_id": 151655,
    "text_config": {
        "vocab_size": 152064,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "max_window_layers": 28,
        "layer_types": ["full_attention"] * 28,
        "rope_parameters": {"rope_type": "default", "mrope_section": [16, 24, 24]},
    },
    "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "num_heads": 16, "patch_size": 14},
}
"""Sizes of Qwen2-VL-7B."""


def _first(config: dict[str, Any]) -> dict[str, Any]:
    how, made = next(shrink.candidates(config))
    assert how == "fewer heads and layers"
    return made


def test_a_tower_follows_the_text_models_width() -> None:
    made = _first(QWEN2_VL_7B)
    text, tower = made["text_config"], made["vision_config"]
    assert tower["hidden_size"] == text["hidden_size"] < 3584
    assert text["hidden_size"] // text["num_attention_heads"] == 3584 // 28, (
        "rotary sections are cut by the head's size"
    )
    assert tower["embed_dim"] // tower["num_heads"] == 1280 // 16
    assert text["num_attention_heads"] % text["num_key_value_heads"] == 0
    assert text["num_key_value_heads"] < text["num_attention_heads"], "groups stay groups"
    assert text["num_hidden_layers"] == tower["depth"] == shrink.FEWEST_LAYERS
    assert text["layer_types"] == ["full_attention"] * 2
    assert text["rope_parameters"] == QWEN2_VL_7B["text_config"]["rope_parameters"]


def test_what_fits_the_processor_stays() -> None:
    made = _first(QWEN2_VL_7B)
    assert made["text_config"]["vocab_size"] == 152064
    assert made["image_token_id"] == 151655
    assert made["vision_config"]["patch_size"] == 14


def test_every_kind_of_layer_is_kept() -> None:
    """Gemma3 has five layers with a window before one without."""
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 5
    config = {
        "num_hidden_layers": 30,
        "hidden_size": 2560,
        "num_attention_heads": 8,
        "head_dim": 256,
        "layer_types": kinds,
    }
    made = _first(config)
    assert made["layer_types"] == kinds[:6]
    assert made["num_hidden_layers"] == 6
    assert made["head_dim"] == 256


def test_numbers_of_layers_stay_within_the_depth() -> None:
    """Qwen3-VL adds features of three layers, LLaVA takes those of the last but one."""
    config = {"depth": 27, "hidden_size": 1152, "num_heads": 16, "deepstack_visual_indexes": [8, 16, 24]}
    made = _first(config)
    assert made["deepstack_visual_indexes"] == [0, 1, 2]
    assert made["depth"] == 4
    llava = _first({"vision_feature_layer": -5, "vision_config": {"num_hidden_layers": 24, "hidden_size": 64}})
    assert llava["vision_config"]["num_hidden_layers"] == 5


def test_parts_of_a_flat_config_are_told_apart_by_their_prefix() -> None:
    config = {
        "tower_hidden_size": 1024,
        "tower_num_heads": 8,
        "tower_num_layers": 12,
        "text": QWEN2_VL_7B["text_config"],
    }
    made = _first(config)
    assert (made["tower_hidden_size"], made["tower_num_heads"], made["tower_num_layers"]) == (256, 2, 2)


def test_a_config_that_is_small_already_has_no_candidates() -> None:
    assert list(shrink.candidates(_first(QWEN2_VL_7B))) == []


def test_the_config_given_is_not_changed() -> None:
    before = deepcopy(QWEN2_VL_7B)
    list(shrink.candidates(QWEN2_VL_7B))
    assert before == QWEN2_VL_7B


heads = st.integers(1, 64)
size = st.sampled_from([16, 32, 64, 72, 80, 96, 128])


@given(heads, size, heads, size, st.integers(1, 8), st.integers(1, 80), st.integers(1, 48))
def test_shapes_that_depend_on_each_other_still_do(
    text_heads: int, text_head: int, tower_heads: int, tower_head: int, groups: int, depth: int, tower_depth: int
) -> None:
    """Head sizes stay, heads divide widths, key heads divide heads, and the connector fits, whatever the sizes."""
    hidden = text_heads * text_head
    config = {
        "text_config": {
            "hidden_size": hidden,
            "intermediate_size": 4 * hidden,
            "num_hidden_layers": depth,
            "num_attention_heads": text_heads,
            "num_key_value_heads": text_heads // groups if text_heads % groups == 0 else text_heads,
        },
        "vision_config": {
            "hidden_size": tower_heads * tower_head,
            "num_attention_heads": tower_heads,
            "depth": tower_depth,
            "out_hidden_size": hidden,
        },
    }
    for how, made in shrink.candidates(config):
        text, tower = made["text_config"], made["vision_config"]
        assert text["hidden_size"] == text["num_attention_heads"] * text_head, how
        assert tower["hidden_size"] == tower["num_attention_heads"] * tower_head, how
        assert tower["out_hidden_size"] == text["hidden_size"], how
        assert text["intermediate_size"] == 4 * text["hidden_size"], how
        assert text["num_attention_heads"] % text["num_key_value_heads"] == 0, how
        assert 1 <= text["num_hidden_layers"] <= depth
        assert 1 <= tower["depth"] <= tower_depth
