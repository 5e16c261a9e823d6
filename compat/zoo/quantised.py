"""Quantised checkpoints of the zoo's families, and what transformers would answer with their weights.

Takes a family, a scheme, the names that the files and the lists of the config are to have; gives two folders: the quantised
checkpoint, and the same one with the rounded weights in float32, under the same names and without a word of quantisation. Only
the layers of the text model are quantised, as quantisers do with multimodal models. Written by hand, by the formats' own rules:
no quantiser is needed.
"""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat.zoo.build import rename_weights
from compat.zoo.store import checkpoint

if TYPE_CHECKING:
    import torch

    Packed = tuple[dict[str, torch.Tensor], torch.Tensor]
    """What takes a weight's place in the files, by the ends of names; and the weight that it stands for."""

GROUP = 32
"""Inputs that share a scale, for the schemes with groups."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a weight is rounded and written down."""

    pack: "Callable[[torch.Tensor], Packed]"
    config: Callable[[Sequence[str]], dict[str, Any]]
    """From the names that are listed as left alone to `quantization_config`."""


def quantise(
    family: str,
    folder: Path,
    scheme: Scheme,
    *,
    quantised: str,
    listed: Sequence[str],
    prefixes: Mapping[str, str] | None = None,
) -> tuple[Path, Path]:
    """Make the folders `folder`/quantised and `folder`/whole of the checkpoint of `family`, and return them.

    `prefixes` are renamed as in `compat.zoo.build.rename_weights`; the weights whose name then matches the expression `quantised`
    are packed by `scheme`. `listed` goes into the config as it is. Raises `ValueError` where no weight matches.
    """
    from safetensors.torch import load_file, save_file

    packed_folder, whole_folder = folder / "quantised", folder / "whole"
    for each in (packed_folder, whole_folder):
        shutil.copytree(checkpoint(family), each)
        rename_weights(each / "model.safetensors", prefixes or {})
    weights = load_file(whole_folder / "model.safetensors")
    chosen = [name for name in weights if re.fullmatch(quantised, name)]
    if not chosen:
        raise ValueError(
            f"quantised: found no weight like {quantised}; expected one of {sorted(weights)[:8]} and others"
        )
    packed = dict(weights)
    for name in chosen:
        parts, weights[name] = scheme.pack(packed.pop(name))
        packed |= {name.removesuffix("weight") + end: part.contiguous() for end, part in parts.items()}
    save_file(packed, packed_folder / "model.safetensors", metadata={"format": "pt"})
    save_file(weights, whole_folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((packed_folder / "config.json").read_text())
    config["quantization_config"] = scheme.config(listed)
    (packed_folder / "config.json").write_text(json.dumps(config, indent=2))
    return packed_folder, whole_folder


def _int8(weight: "torch.Tensor") -> "Packed":
    scale = weight.abs().amax(1, keepdim=True) / 127
    rounded = (weight / scale).round().clamp(-128, 127)
    import torch

    return {"weight": rounded.to(torch.int8), "weight_scale": scale}, rounded * scale


def _int8_config(listed: Sequence[str]) -> dict[str, Any]:
    weights = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True, "dynamic": False}
    return _compressed_tensors(
        "int-quantized", listed, weights, dict(weights, strategy="token", dynamic=True, symmetric=False)
    )


def _int4(weight: "torch.Tensor") -> "Packed":
    import torch
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    groups = weight.unflatten(1, (-1, GROUP))
    scale = groups.abs().amax(2) / 7
    rounded = (groups / scale[..., None]).round().clamp(-8, 7)
    parts = {
        "weight_packed": pack_to_int32(rounded.flatten(1).to(torch.int8), 4),
        "weight_scale": scale,
        "weight_shape": torch.tensor(weight.shape),
    }
    return parts, (rounded * scale[..., None]).flatten(1)


def _int4_config(listed: Sequence[str]) -> dict[str, Any]:
    weights = {
        "num_bits": 4,
        "type": "int",
        "strategy": "group",
        "group_size": GROUP,
        "symmetric": True,
        "dynamic": False,
    }
    return _compressed_tensors("pack-quantized", listed, weights, None)


def _compressed_tensors(
    form: str, listed: Sequence[str], weights: dict[str, Any], inputs: dict[str, Any] | None
) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "output_activations": None}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {**group, "format": form}},
        "ignore": list(listed),
        "kv_cache_scheme": None,
    }


INT8 = Scheme(_int8, _int8_config)
"""compressed-tensors, a scale for each row of a weight, inputs rounded to eight bits between the least and the largest of each
token while they are computed with. (vLLM's CPU kernel for scales around zero takes no float32 on a machine with AMX.)"""
INT4 = Scheme(_int4, _int4_config)
"""compressed-tensors, four bits packed into int32, a scale for each `GROUP` inputs."""


def round_inputs(text_model: "torch.nn.Module") -> int:
    """Let the linear layers in the layers of transformers' `text_model` round what they are given as `INT8` does; returns how
    many."""
    import torch

    class RoundedInputs(torch.nn.Linear):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            low, high = hidden_states.aminmax(dim=-1, keepdim=True)
            scale = (high - low) / 255
            zero = (-128 - low / scale).round()
            rounded = ((hidden_states / scale).round() + zero).clamp(-128, 127)
            return super().forward((rounded - zero) * scale)

    layers = [each for each in text_model.modules() if type(each) is torch.nn.Linear]
    for layer in layers:
        layer.__class__ = RoundedInputs
    return len(layers)
