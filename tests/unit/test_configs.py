"""Configs: rules on the families' own config classes, and the part of a checkpoint that is served."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from compat.zoo import spec
from compat.zoo.tokenizer import make_tokenizer
from hf_backend.configs import rules
from hf_backend.configs.parts import headless, served_config
from hf_backend.layers.kept import aside, kept
from hf_backend.weights.names import ServedNames, SkeletonNames
from hf_backend.weights.skeleton import output_embeddings_name, skeleton


def _config(family: str) -> Any:
    found = spec(family)
    return getattr(transformers, found.config_class)(**found.config(make_tokenizer(found)))


@pytest.mark.parametrize("family", ["chameleon", "phi4_multimodal"])
def test_a_flat_multimodal_config_gets_a_text_config(family: str) -> None:
    """vLLM takes a config that is its own text config for a text model's."""
    config = rules.with_text_config(_config(family))
    text = config.get_text_config()
    assert text is not config
    assert text.hidden_size == config.hidden_size
    # It must survive the way to a worker process and back.
    assert copy.deepcopy(config).get_text_config().num_hidden_layers == config.num_hidden_layers


@pytest.mark.parametrize(
    "config",
    [transformers.LlamaConfig(), transformers.Qwen3MoeConfig(), transformers.T5Config()],
    ids=lambda c: c.model_type,
)
def test_a_text_config_stays_as_it_is(config: Any) -> None:
    assert rules.with_text_config(config) is config
    assert not hasattr(config, "text_config")


def test_a_nested_config_stays_as_it_is() -> None:
    config = _config("llava")
    text = config.text_config
    assert rules.with_text_config(config).text_config is text


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_omni_moe", "llava"])
def test_a_pictures_token_has_the_name_that_drafts_ask_for(family: str) -> None:
    """vLLM reads it when a draft model is loaded, of the whole config, whatever its own name and place are."""
    config = _config(family)
    part = getattr(config, "thinker_config", config)
    expected = part.image_token_id if hasattr(part, "image_token_id") else part.image_token_index
    assert rules.with_image_token_index(config).image_token_index == expected
    clips = _config("qwen2_audio")
    assert not hasattr(rules.with_image_token_index(clips), "image_token_index")


def test_experts_a_token_are_found_under_another_name() -> None:
    """Aria calls it `moe_topk`; a config that has vLLM's name keeps its value."""
    assert (
        rules.with_experts_a_token(_config("aria")).text_config.num_experts_per_tok
        == _config("aria").text_config.moe_topk
    )
    assert rules.with_experts_a_token(_config("kimi_k25")).text_config.num_experts_per_tok == 2
    assert not hasattr(rules.with_experts_a_token(_config("llava")).text_config, "num_experts_per_tok")


def test_transformers_config_replaces_vllms_where_that_loses_parts() -> None:
    """vLLM's own class of Qwen3-ASR knows another layout, and says nothing when it reads this one."""
    from vllm.transformers_utils.configs import Qwen3ASRConfig

    written = _config("qwen3_asr").to_dict()
    found = rules.of_transformers(Qwen3ASRConfig(), written)
    assert type(found).__module__.startswith("transformers.")
    assert found.text_config.hidden_size == written["text_config"]["hidden_size"]
    # A checkpoint in vLLM's layout keeps vLLM's class.
    theirs = Qwen3ASRConfig()
    assert rules.of_transformers(theirs, {"thinker_config": {}}) is theirs


def test_an_architecture_that_transformers_renamed_is_found() -> None:
    """Checkpoints on the hub name `Qwen2_5OmniModel`, which transformers 5 doesn't have."""
    config = transformers.Qwen2_5OmniConfig(architectures=["Qwen2_5OmniModel"])
    assert rules.with_known_architecture(config).architectures[0] == "Qwen2_5OmniForConditionalGeneration"
    known = transformers.LlavaConfig(architectures=["LlavaForConditionalGeneration"])
    assert rules.with_known_architecture(known).architectures == ["LlavaForConditionalGeneration"]


OMNI = {
    "qwen2_5_omni_thinker": ("Qwen2_5OmniConfig", "Qwen2_5OmniForConditionalGeneration", {}),
    "qwen3_omni_moe_thinker": (
        "Qwen3OmniMoeConfig",
        "Qwen3OmniMoeForConditionalGeneration",
        # Real configs have it, the class has no default for it.
        {"spatial_merge_size": 2, "text_config": {"shared_expert_intermediate_size": 64}},
    ),
}


@pytest.mark.parametrize("thinker", OMNI)
def test_a_full_omni_is_served_by_its_thinker(thinker: str) -> None:
    """The talker's weights are known and left out; the thinker's head is vLLM's."""
    config_class, architecture, talker = OMNI[thinker]
    found = spec(thinker)
    thinker_config = found.config(make_tokenizer(found))
    config = getattr(transformers, config_class)(thinker_config=thinker_config, talker_config=talker)
    part = served_config(config, [architecture], "", trust_remote_code=False)
    assert type(part) is type(config.thinker_config)
    with torch.device("meta"):
        inner = transformers.AutoModel.from_config(part)
    whole = skeleton(config, [architecture], "")
    head = output_embeddings_name(whole)
    served = torch.nn.Module()
    served.model, served.lm_head = inner, torch.nn.Linear(1, 1)
    places, names = ServedNames.of(whole, head, served), SkeletonNames(whole, strict=True)
    arrived = {places.served(name) for name in whole.state_dict()} - {None}
    assert arrived == {f"model.{name}" for name in inner.state_dict()} | {"lm_head.weight"}
    for name in whole.state_dict():
        known = names.known(name)
        assert known is not None
        if name.startswith("talker."):
            assert places.served(known.name) is None


def test_a_class_without_its_head_gives_hidden_states() -> None:
    """What comes out are the text model's hidden states, bit for bit."""
    config = _config("llama4")
    torch.manual_seed(0)
    model = headless(transformers.Llama4ForConditionalGeneration)(config).eval()
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        (found, *_) = model(input_ids=ids, use_cache=False, return_dict=False)
        expected = model.language_model.model(input_ids=ids, use_cache=False).last_hidden_state
    assert type(model).__name__ == "Llama4ForConditionalGeneration"
    assert torch.equal(found, expected)


def test_layers_that_read_their_own_weights_are_kept() -> None:
    """Llama 4's router is a linear layer with more to do, its experts are called without a routing; Aria's projector holds
    torch's own attention. Nothing else is kept."""
    with torch.device("meta"):
        llama4 = transformers.Llama4ForConditionalGeneration(_config("llama4"))
        aria = transformers.AriaModel(_config("aria"))
        llava = transformers.LlavaModel(_config("llava"))
    assert {name for _, name in kept(llama4, llama4.language_model)} == {"router", "experts"}
    assert {type(parent._modules[name]).__name__ for parent, name in kept(aria, aria.language_model)} == {
        "MultiheadAttention"
    }
    assert not list(kept(llava, llava.language_model))


def test_kept_layers_are_out_of_sight_and_come_back() -> None:
    """Also where something fails in between."""
    with torch.device("meta"):
        model = transformers.AriaModel(_config("aria"))
    before = dict(model.named_modules())

    def fail() -> None:
        with aside(model, model.language_model):
            assert not any(isinstance(module, torch.nn.MultiheadAttention) for module in model.modules())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert dict(model.named_modules()) == before


def test_experts_of_a_tower_are_kept() -> None:
    """vLLM sizes expert layers by the text config, which says nothing of a tower's."""
    with torch.device("meta"):
        model = transformers.AriaModel(_config("aria"))
        model.vision_tower.experts = copy.deepcopy(model.language_model.layers[0].mlp.experts)
    assert (model.vision_tower, "experts") in list(kept(model, model.language_model))
    assert not any(parent in set(model.language_model.modules()) for parent, _ in kept(model, model.language_model))


def test_a_config_of_another_kind_is_not_taken_for_multimodal() -> None:
    """A part's config alone doesn't make a model multimodal: transformers has to list it."""
    assert not rules.is_multimodal(
        SimpleNamespace(model_type="no_such_type", vision_config=transformers.CLIPVisionConfig())
    )
