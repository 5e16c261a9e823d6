"""Which of a checkpoint's layers are quantised, by the headers of its files.

Takes what safetensors files say of their tensors; gives for each layer of vLLM's model whether it is stored whole or quantised, and
by which names the checkpoint knows it. A list of layers that a quantiser left alone holds patterns in names of its own release;
what is in the files can't be misread. Not for tensors' contents.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hf_backend.weights.names import ServedNames, SkeletonNames

WHOLE = frozenset({"F64", "F32", "F16", "BF16"})
"""safetensors' names of the dtypes that weights have where nothing is quantised."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a checkpoint holds, by vLLM's names of layers before any are fused."""

    quantised: frozenset[str]
    whole: frozenset[str]
    aliases: Mapping[str, frozenset[str]]
    """vLLM's name of a layer, or of a module around layers, to the names that the checkpoint's files and transformers have."""

    def names(self, module: str) -> Iterator[str]:
        """Names of `module`, vLLM's own first, also of one that vLLM made of several (`qkv_proj`)."""
        yield module
        yield from sorted(self.aliases.get(module, frozenset()) - {module})
        parent, _, leaf = module.rpartition(".")
        if module not in self.aliases:
            yield from (f"{alias}.{leaf}" for alias in sorted(self.aliases.get(parent, frozenset()) - {parent}))

    def holds(self, which: frozenset[str], module: str) -> bool:
        """Whether `module`, or a layer inside it (an expert), is among `which`."""
        return module in which or any(each.startswith(f"{module}.") for each in which)


def stored(headers: Mapping[str, Mapping[str, Any]], names: SkeletonNames, places: ServedNames) -> Stored:
    """Read `headers`, a tensor's name to its `dtype` and `shape`, for the model that `names` and `places` are of.

    A layer is quantised if anything of it isn't a weight of transformers' model in a floating dtype and of its size.
    """
    tensors: dict[str, list[bool]] = defaultdict(list)
    aliases: dict[str, set[str]] = defaultdict(set)
    for name, header in headers.items():
        if "dtype" not in header:
            continue  # `__metadata__` of a file, which vLLM passes on with its tensors
        known = names.known(name)
        served = None if known is None else places.served(known.plain or known.name)
        if known is None or served is None:
            continue
        inside = names.owner(known.plain or known.name)
        depth = known_depth(known.plain or known.name, inside)
        module = _above(served, depth)
        expected = names.state.get(known.name)
        whole = (
            expected is not None
            and header["dtype"] in WHOLE
            and (known.pattern is not None or list(header["shape"]) == list(expected.shape))
        )
        tensors[module].append(whole)
        for path in (_above(name, depth), inside):
            for alias, around in zip(_around(path), _around(module), strict=False):
                if alias.rpartition(".")[2] != around.rpartition(".")[2]:
                    break
                aliases[around].add(alias)
    quantised = frozenset(module for module, all_whole in tensors.items() if not all(all_whole))
    return Stored(
        quantised, frozenset(tensors) - quantised, {module: frozenset(found) for module, found in aliases.items()}
    )


def known_depth(name: str, module: str) -> int:
    """How many parts of a tensor's name are its own, behind its module's: `weight`, or `weight.absmax`."""
    return name.count(".") - module.count(".") if module else name.count(".") + 1


def _above(name: str, depth: int) -> str:
    return ".".join(name.split(".")[:-depth]) if depth else name


def _around(module: str) -> Iterator[str]:
    """`module` and the modules around it, innermost first."""
    while module:
        yield module
        module = module.rpartition(".")[0]
