"""Weights: transformers' own renamings and converters, on real models, in the layouts that transformers itself loads (C12)."""

import copy
import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers

from compat.zoo import spec
from compat.zoo.build import make_model
from compat.zoo.tokenizer import make_tokenizer
from hf_backend.errors import UnsupportedModelError
from hf_backend.weights.convert import Reader, natural
from hf_backend.weights.names import ServedNames, SkeletonNames
from hf_backend.weights.skeleton import head_is_tied, output_embeddings_name, skeleton

FAMILIES = (
    "llava",
    "qwen2_vl",
    "qwen3_vl_moe",
    "kimi_k25",
    "audioflamingo3",
    "llama4",
    "deepseek_vl",
    "qwen2_5_omni_thinker",
)


@functools.cache
def _model(family: str) -> Any:
    found = spec(family)
    return make_model(found, make_tokenizer(found))


def _saved(model: Any) -> dict[str, torch.Tensor]:
    """What `save_pretrained` writes: the hub's layout, wherever transformers can convert back to it."""
    from transformers.core_model_loading import revert_weight_conversion

    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    return dict(revert_weight_conversion(model, state))


def _reader(model: Any, *, strict: bool = True) -> Reader:
    """A reader for a model whose layers nobody has replaced: what it gives must be the model's own weights."""
    made = skeleton(model.config, [type(model).__name__], "")
    served = _Served(model)
    head = output_embeddings_name(made)
    return Reader(made, served, SkeletonNames(made, strict=strict), ServedNames.of(made, head, served))


class _Served(torch.nn.Module):
    """The form of vLLM's model: the HF model without its head under `model`, beside `lm_head`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        base = getattr(model, model.base_model_prefix, model) if model.base_model_prefix else model
        self.model = base
        self.lm_head = model.get_output_embeddings()
        self.ignore_unexpected_prefixes: list[str] = []


def _expected(model: Any) -> dict[str, torch.Tensor]:
    """The model's own weights under vLLM's names."""
    served = _Served(model)
    names = {id(tensor): f"model.{name}" for name, tensor in served.model.state_dict(keep_vars=True).items()}
    for name, tensor in model.get_output_embeddings().state_dict(keep_vars=True).items():
        names[id(tensor)] = f"lm_head.{name}"
    return {names[id(tensor)]: tensor for tensor in model.state_dict(keep_vars=True).values()}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["saved", "own names"])
def test_c12_every_weight_arrives_bit_for_bit(family: str, layout: str) -> None:
    """C12: both what transformers saves and the model's own names give all weights of the model, unchanged."""
    model = _model(family)
    weights = _saved(model) if layout == "saved" else dict(model.state_dict())
    found = dict(_reader(model)(weights.items()))
    expected = _expected(model)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_a_layout_that_differs_is_among_them() -> None:
    """The test above would pass by renaming nothing if transformers saved every family under its own names."""
    model = _model("kimi_k25")
    assert not _saved(model).keys() & {name for name in model.state_dict() if ".q_proj" in name and "vision" in name}


def test_parts_may_come_in_any_order() -> None:
    """Experts are stacked by their numbers and Kimi's norms renamed by what else there is, whatever the file's order."""
    model = _model("kimi_k25")
    weights = list(_saved(model).items())
    assert any(".experts.3." in name for name, _ in weights)
    found = dict(_reader(model)(reversed(weights)))
    for name, tensor in _expected(model).items():
        assert torch.equal(found[name], tensor), name


def test_parts_of_one_layer_are_held_not_all() -> None:
    """A converted weight is given as soon as its parts are complete."""
    model = _model("kimi_k25")
    reader = _reader(model)
    most = 0

    def stream() -> Iterator[tuple[str, torch.Tensor]]:
        nonlocal most
        for pair in _saved(model).items():
            yield pair
            most = max(most, len(reader._parts))

    assert list(reader(stream()))
    # gate_up_proj and down_proj of one layer; nothing is left.
    assert most <= 2
    assert not reader._parts


def test_single_experts_are_left_to_vllm_where_it_has_its_own_layer() -> None:
    """vLLM's expert layers load expert by expert; transformers' own module gets them stacked."""
    model = copy.deepcopy(_model("kimi_k25"))
    weights = _saved(model)
    reader = _reader(model)
    served: Any = reader._model
    for parent in list(served.modules()):
        if "experts" in parent._modules:
            parent._modules["experts"] = torch.nn.Identity()
    found = dict(reader(weights.items()))
    assert any(name.endswith(".experts.3.gate_proj.weight") for name in found)
    assert not any(name.endswith(".gate_up_proj") for name in found)


def test_a_weight_without_a_place_is_named() -> None:
    """An unknown weight stops the start by its name in the checkpoint."""
    model = _model("llava")
    weights = {**_saved(model), "model.no_such.weight": torch.zeros(1)}
    with pytest.raises(UnsupportedModelError, match=r"LlavaForConditionalGeneration.*model\.no_such\.weight"):
        list(_reader(model)(weights.items()))


def test_a_missing_expert_is_named() -> None:
    """A converted weight of which a part is missing stops the start."""
    model = _model("kimi_k25")
    weights = {name: tensor for name, tensor in _saved(model).items() if ".experts.2.gate_proj" not in name}
    with pytest.raises(UnsupportedModelError, match="gate_up_proj"):
        list(_reader(model)(weights.items()))


def test_recomputed_buffers_of_old_checkpoints_are_dropped() -> None:
    """`rotary_emb.inv_freq` stands in old checkpoints and is computed by the model."""
    model = _model("llava")
    (name,) = [name for name, _ in model.named_buffers() if name.endswith("rotary_emb.inv_freq")][:1]
    found = dict(_reader(model)({**_saved(model), name: torch.zeros(1)}.items()))
    assert found.keys() == _expected(model).keys()


def test_scales_of_a_quantised_checkpoint_pass() -> None:
    """Names of a quantisation method's own tensors pass under their module's name; nothing else does."""
    model = _model("llava")
    extra = "model.language_model.layers.0.mlp.down_proj.weight_scale"
    found = dict(_reader(model, strict=False)({**_saved(model), extra: torch.ones(1)}.items()))
    assert extra in found
    with pytest.raises(UnsupportedModelError, match="weight_scale"):
        list(_reader(model)({**_saved(model), extra: torch.ones(1)}.items()))


@pytest.mark.parametrize(("outer", "inner"), [(True, False), (False, True), (True, True), (False, False)])
def test_head_is_tied_as_transformers_ties_it(outer: bool, inner: bool) -> None:
    """Where the outer and the inner config disagree, the class decides which one counts."""
    found = spec("llava")
    config = getattr(transformers, found.config_class)(**found.config(make_tokenizer(found)))
    config.tie_word_embeddings, config.text_config.tie_word_embeddings = outer, inner
    model = transformers.LlavaForConditionalGeneration(config)
    shared = model.lm_head.weight is model.get_input_embeddings().weight
    made = skeleton(config, ["LlavaForConditionalGeneration"], "")
    assert head_is_tied(made, "lm_head") == shared


def test_an_unknown_architecture_is_told() -> None:
    """A class that nobody has stops the start by name."""
    with pytest.raises(UnsupportedModelError, match="NoSuchModel"):
        skeleton(SimpleNamespace(auto_map=None), ["NoSuchModel"], "")


def test_the_skeleton_takes_no_memory() -> None:
    """A second model is made for its names, shapes and class: 7 billion weights are 0.7 s and 28 MiB of Python objects."""
    config = transformers.Qwen2_5_VLConfig(
        text_config={
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
        }
    )
    made = skeleton(config, ["Qwen2_5_VLForConditionalGeneration"], "none")
    assert sum(tensor.numel() for tensor in made.parameters()) > 7e9
    assert {tensor.device.type for tensor in [*made.parameters(), *made.buffers()]} == {"meta"}


def test_numbers_sort_by_value() -> None:
    """Expert 2 stands before expert 10."""
    assert sorted(["a.10.b", "a.2.b"], key=natural) == ["a.2.b", "a.10.b"]
