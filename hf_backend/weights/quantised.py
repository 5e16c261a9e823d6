"""A quantisation method asked about layers as the checkpoint has them.

Takes vLLM's quantisation config and what the checkpoint's files hold; makes the config answer for each layer by that. vLLM asks by
its own names, after it has renamed what a config lists: patterns keep the names of a quantiser's release (`re:vision_tower.*`),
lists may name a parent, with a dot behind it or without, and some checkpoints (GPTQ, AWQ) don't list towers that they left whole.
Not for the methods themselves, which are vLLM's.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from hf_backend.upstream import current_platform
from hf_backend.upstream.quantisation import (
    LinearBase,
    RoutedExperts,
    UnquantizedLinearMethod,
    VocabParallelEmbedding,
    get_safetensors_params_metadata,
)
from hf_backend.weights.names import ServedNames, SkeletonNames
from hf_backend.weights.skeleton import output_embeddings_name
from hf_backend.weights.stored import Stored, stored

Ask = Callable[[Any, str], Any]
"""A config's own answer for a layer of a name."""
NO_LAYER = "no.layer.has.this.name"
"""Asked for to see whether a config quantises all that it doesn't list."""


def method_of(layer: Any, prefix: str, ask: Ask, held: Stored, packed: Mapping[str, Sequence[str]]) -> Any:
    """How `layer`, which vLLM calls `prefix`, is quantised; `packed` are the layers that vLLM fuses, by the fused one's name."""
    if not isinstance(layer, (LinearBase, VocabParallelEmbedding, RoutedExperts)):
        return ask(layer, prefix)
    if not held.quantised:
        return _by_lists(layer, prefix, ask, held)
    parent, _, leaf = prefix.rpartition(".")
    parts = [f"{parent}.{part}" for part in packed.get(leaf, ())] or [prefix]
    if not any(held.holds(held.quantised, part) for part in parts):
        return _whole(layer)
    return _as_stored(layer, prefix, ask, held)


def _as_stored(layer: Any, prefix: str, ask: Ask, held: Stored) -> Any:
    """The method of a layer that is quantised in the files, by the first of its names that the config has one for."""
    refused: ValueError | None = None
    for name in held.names(prefix):
        try:
            method = ask(layer, name)
        except ValueError as error:  # lists hold some of the parts of a fused layer under this name
            refused = refused or error
            continue
        if not _is_whole(method):
            return method
    if refused is not None:
        raise refused
    return _whole(layer)


def _by_lists(layer: Any, prefix: str, ask: Ask, held: Stored) -> Any:
    """The method of a layer that vLLM would quantise while it loads: none if a list has it or what it is part of; where a config
    lists what is quantised, not what isn't, the first of its names that it has a method for."""
    if _is_whole(ask(layer, NO_LAYER)):
        return _as_stored(layer, prefix, ask, held)
    for name in _listed(held, prefix):
        method = ask(layer, name)
        if _is_whole(method):
            return method
    return ask(layer, prefix)


def _listed(held: Stored, prefix: str) -> Iterator[str]:
    """Names by which a list may have a layer, or what it is part of: as the files, transformers and vLLM have them, without the
    base model's own name in front, and with a dot behind."""
    for whole in held.names(prefix):
        yield whole
        for name in dict.fromkeys((whole, whole.removeprefix("model."))):
            while name:
                yield name
                yield f"{name}."
                name = name.rpartition(".")[0]


def _is_whole(method: Any) -> bool:
    return method is None or type(method).__name__.startswith("Unquantized")


def _whole(layer: Any) -> Any:
    """What vLLM expects of a config for a layer that isn't quantised."""
    return UnquantizedLinearMethod() if isinstance(layer, LinearBase) else None


def follow_checkpoint(model: Any, skeleton: Any) -> bool:
    """Let the quantisation config of `model`, vLLM's with its HF model on the meta device, answer by what its checkpoint's files
    hold; it stays of its class, as far as `isinstance` and names go. False where the files' headers can't be read (no safetensors,
    nothing at hand of a repository): vLLM's own renaming of the config has to do then."""
    config = model.model_config
    headers = get_safetensors_params_metadata(config.model, revision=config.revision)
    answer_by(model.quant_config, None)
    if not headers:
        return False
    names = SkeletonNames(skeleton, strict=False)
    places = ServedNames.of(skeleton, output_embeddings_name(skeleton), model)
    answer_by(model.quant_config, stored(headers, names, places))
    return True


def answer_by(config: Any, held: Stored | None) -> None:
    """Let `config` answer by what a checkpoint holds, where that is known."""
    kind: Any = type(config)
    config.__class__ = _by_checkpoint(kind)
    config.held = held


@functools.cache
def _by_checkpoint(kind: Any) -> Any:
    """`kind`, a config's class, with answers by the checkpoint: of one base, or Python wouldn't let a config become one."""
    if hasattr(kind, "held"):
        return kind

    def get_quant_method(self: Any, layer: Any, prefix: str) -> Any:
        ask = functools.partial(kind.get_quant_method, self)
        held: Stored | None = self.held
        method = (
            ask(layer, prefix) if held is None else method_of(layer, prefix, ask, held, self.packed_modules_mapping)
        )
        if current_platform.is_cpu() and isinstance(layer, LinearBase) and not _is_whole(method):
            found: Any = type(method)
            method.__class__ = _flat(found)
        return method

    return type(
        kind.__name__, (kind,), {"__module__": kind.__module__, "get_quant_method": get_quant_method, "held": None}
    )


@functools.cache
def _flat(kind: Any) -> Any:
    """`kind`, a linear layer's method, that is given rows: vLLM's own models have no batch dimension, transformers' do, and a CPU
    kernel of vLLM refuses it ("mat1 must be a 2D tensor"). By its name vLLM chooses how weights are loaded."""

    def apply(self: Any, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        rows: torch.Tensor = kind.apply(self, layer, x.reshape(-1, x.shape[-1]).contiguous(), bias)
        return rows.reshape(*x.shape[:-1], rows.shape[-1])

    return type(kind.__name__, (kind,), {"__module__": kind.__module__, "apply": apply})
