"""Which layers of a quantised checkpoint are quantised, by its files and by lists in any names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors import CompressedTensorsConfig
from vllm.transformers_utils.config import get_safetensors_params_metadata

from compat.zoo.quantised import INT4, INT8, Scheme, quantise
from compat.zoo.store import checkpoint
from hf_backend.weights.names import ServedNames, SkeletonNames
from hf_backend.weights.quantised import answer_by
from hf_backend.weights.skeleton import output_embeddings_name, skeleton
from hf_backend.weights.stored import Stored, stored

pytestmark = pytest.mark.encoding

IN_MEMORY = {
    "language_model.lm_head.": "lm_head.",
    "language_model.model.": "model.language_model.",
    "vision_tower.": "model.vision_tower.",
    "multi_modal_projector.": "model.multi_modal_projector.",
}
PARTS = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj")
TEXT = {f"model.language_model.layers.{layer}.{part}" for layer in (0, 1) for part in (*PARTS, "mlp.down_proj")}


def held(folder: Path, headers: Mapping[str, Any] | None = None) -> Stored:
    config = AutoConfig.from_pretrained(folder)
    made = skeleton(config, config.architectures, str(folder))
    places = ServedNames("model", output_embeddings_name(made), frozenset(), frozenset())
    headers = headers or get_safetensors_params_metadata(str(folder))
    return stored(headers, SkeletonNames(made, strict=False), places)


@pytest.mark.parametrize("scheme", [INT8, INT4])
@pytest.mark.parametrize(
    "prefixes", [{}, {"vision_tower.": "vision_tower.vision_model."}, IN_MEMORY], ids=["saved", "before 5", "in memory"]
)
def test_layers_are_told_by_the_files(scheme: Scheme, prefixes: dict[str, str], tmp_path: Path) -> None:
    expression = r"(model\.language_model|language_model\.model)\.layers\..*proj\.weight"
    packed, _ = quantise("llava", tmp_path, scheme, quantised=expression, listed=[], prefixes=prefixes)
    found = held(packed)
    assert found.quantised == TEXT
    assert "model.vision_tower.encoder.layers.0.mlp.fc1" in found.whole
    assert {"lm_head", "model.multi_modal_projector.linear_1"} <= found.whole
    theirs = "language_model.model" if prefixes is not IN_MEMORY else "model.language_model"
    assert f"{theirs}.layers.0.self_attn.qkv_proj" in set(
        found.names("model.language_model.layers.0.self_attn.qkv_proj")
    )


def test_bitsandbytes_shaped_files() -> None:
    """Bytes in place of a weight, and what they mean under names that go on behind `weight`. vLLM 0.29 to 0.32 have no such
    method, so that only the reading of the files can be shown."""
    folder = checkpoint("qwen2_vl")
    headers = dict(get_safetensors_params_metadata(str(folder)))
    for name in [name for name in headers if name.startswith("model.layers.") and name.endswith("proj.weight")]:
        rows, columns = headers[name]["shape"]
        headers[name] = {"dtype": "U8", "shape": [rows * columns // 2, 1]}
        headers[f"{name}.absmax"] = {"dtype": "U8", "shape": [rows * columns // 64]}
        headers[f"{name}.quant_map"] = {"dtype": "F32", "shape": [16]}
        headers[f"{name}.quant_state.bitsandbytes__nf4"] = {"dtype": "U8", "shape": [80]}
    found = held(folder, headers)
    assert found.quantised == TEXT
    assert {"model.visual.blocks.0.attn.qkv", "model.visual.merger.mlp.0", "lm_head"} <= found.whole


LISTS = [
    pytest.param("qwen2_vl", ["visual", "lm_head"], id="a parent, as bitsandbytes' llm_int8_skip_modules has it"),
    pytest.param("qwen2_vl", ["model.visual"], id="a parent in names of transformers 5"),
    pytest.param("qwen2_vl", ["visual."], id="a dot behind it"),
    pytest.param("qwen2_vl", ["visual.blocks.0", "model.visual.blocks.1", "visual.merger.mlp"], id="parts of it"),
    pytest.param(
        "gemma4", ["model.vision_tower", "model.audio_tower", "embed_vision", "model.embed_audio"], id="gemma4"
    ),
]


@pytest.mark.parametrize(("family", "names"), LISTS)
def test_lists_of_what_a_method_leaves_alone_while_it_loads(family: str, names: list[str]) -> None:
    """Files of whole weights, and a method whose list vLLM compares by equal names."""
    folder = checkpoint(family)
    config: Any = CompressedTensorsConfig.from_config(INT8.config(names))
    answer_by(config, held(folder))
    towers, text = _linear_layers(folder)
    assert towers
    assert text
    assert {_kind(config, name) for name in towers} == {"UnquantizedLinearMethod"}
    assert "UnquantizedLinearMethod" not in {_kind(config, name) for name in text}


def test_a_layer_inside_a_listed_one() -> None:
    """Gemma 4 has a linear layer inside each projection; lists have the one or the other."""
    folder = checkpoint("gemma4")
    layer = "model.vision_tower.encoder.layers.0.self_attn.q_proj"
    for listed in (layer, f"{layer}.linear"):
        config: Any = CompressedTensorsConfig.from_config(INT8.config([listed]))
        answer_by(config, held(folder))
        assert _kind(config, f"{layer}.linear") == "UnquantizedLinearMethod"
        assert _kind(config, f"{layer.replace('q_proj', 'k_proj')}.linear") != "UnquantizedLinearMethod"


def test_a_config_that_lists_what_is_quantised() -> None:
    """By patterns in names of the files, which are not those that vLLM asks by."""
    folder = checkpoint("qwen2_vl")
    written = INT8.config([])
    written["config_groups"]["group_0"]["targets"] = [r"re:^model\.layers\..*proj$"]
    config: Any = CompressedTensorsConfig.from_config(written)
    answer_by(config, held(folder))
    towers, text = _linear_layers(folder)
    assert {_kind(config, name) for name in towers} == {"UnquantizedLinearMethod"}
    assert {_kind(config, name) for name in text} == {"CompressedTensorsLinearMethod"}


def _linear_layers(folder: Path) -> tuple[set[str], set[str]]:
    """vLLM's names of the linear layers outside the text model, and of those in it."""
    config = AutoConfig.from_pretrained(folder)
    made = skeleton(config, config.architectures, str(folder))
    names = {name for name, module in made.named_modules() if isinstance(module, torch.nn.Linear)} - {"lm_head"}
    text = {name for name in names if name.startswith("model.language_model.")}
    return names - text, text


def _kind(config: Any, name: str) -> str:
    layer = ReplicatedLinear.__new__(ReplicatedLinear)  # only its class is asked for
    torch.nn.Module.__init__(layer)
    return type(config.get_quant_method(layer, name)).__name__
