"""Weights converted by transformers' own converters while a checkpoint streams through.

Takes (name, tensor) pairs in the order in which a loader reads them; gives pairs under vLLM's names. A converter's parts are
held until the weight that they make is complete, which the skeleton's shapes tell: the parts of one layer's experts, not all.
"""

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from hf_backend.errors import UnsupportedModelError
from hf_backend.weights.names import Known, ServedNames, SkeletonNames

SHOWN = 8
"""Names told in an error; the rest is counted."""

EXPERT_PARTS = frozenset({"gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"})
"""Projections of a single expert that vLLM's expert layers load by themselves, expert by expert."""


@dataclass(slots=True)
class _Parts:
    """What was read of a weight that a converter makes."""

    converter: Any
    expected: int
    """Elements of all weights that the converter makes."""
    tensors: list[tuple[str, str, torch.Tensor]] = field(default_factory=list)
    """Checkpoint's name, pattern and contents."""

    @property
    def complete(self) -> bool:
        """Whether all elements are there."""
        return sum(tensor.numel() for _, _, tensor in self.tensors) >= self.expected


class Reader:
    """Reads one checkpoint for one model of vLLM."""

    def __init__(self, skeleton: Any, served_model: Any, names: SkeletonNames, places: ServedNames) -> None:
        self._skeleton = skeleton
        self._model = served_model
        self._names = names
        self._places = places
        self._parts: dict[str, _Parts] = {}
        self.unknown: list[str] = []
        """The checkpoint's weights that the model has no place for."""
        self.read: set[str] = set()
        """The skeleton's weights that the checkpoint had."""

    def __call__(self, weights: Iterable[tuple[str, torch.Tensor]]) -> Iterator[tuple[str, torch.Tensor]]:
        """Pairs under vLLM's names.

        Raises `UnsupportedModelError` at the end where weights had no place, or where parts of a converted one are missing.
        """
        in_order: list[tuple[str, torch.Tensor]] = []
        for name, tensor in weights:
            if self._names.depends_on_order(name):
                in_order.append((name, tensor))
            else:
                yield from self._one(name, tensor)
        for name, tensor in sorted(in_order, key=lambda pair: natural(pair[0])):
            yield from self._one(name, tensor)
        self._check(len(self._parts))

    def _one(self, name: str, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        known = self._names.known(name)
        if known is None and name in self._places.own:
            yield name, tensor
            return
        if known is None:
            if not self._names.may_be_left_out(name):
                served = self._places.served(name) or name
                if any(served.startswith(prefix) for prefix in self._model.ignore_unexpected_prefixes):
                    return  # layers for speculative decoding
                self.unknown.append(name)
            return
        if self._places.served(known.name) is None:
            return  # left out of vLLM's model: there is nothing to make of it
        if known.pattern is None or self._left_to_vllm(known):
            self.read.add(known.name)
            yield from self._placed(known.plain or known.name, tensor)
            return
        parts = self._parts.setdefault(known.name, self._new_parts(known))
        parts.tensors.append((name, known.pattern, tensor))
        if parts.complete:
            del self._parts[known.name]
            yield from self._converted(known.name, parts)

    def _new_parts(self, known: Known) -> _Parts:
        converter = next(each for each in self._names.converters if known.pattern in each.source_patterns)
        targets = converter.target_patterns
        made = {known.name.replace(targets[0], target) for target in targets}
        expected = sum(self._names.state[name].numel() for name in made if name in self._names.state)
        return _Parts(copy.deepcopy(converter), expected)

    def _converted(self, name: str, parts: _Parts) -> Iterator[tuple[str, torch.Tensor]]:
        # Experts are stacked in the order of their numbers, which a file needn't have.
        for source, pattern, tensor in sorted(parts.tensors, key=lambda part: natural(part[0])):
            parts.converter.add_tensor(name, source, pattern, tensor)
        parts.tensors.clear()
        made = parts.converter.convert(name, model=self._skeleton, config=self._skeleton.config)
        for target, value in made.items():
            self.read.add(target)
            yield from self._placed(target, value[0] if isinstance(value, list) else value)

    def _placed(self, name: str, tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        served = self._places.served(name)
        if served is None:
            return
        experts = self._replaced(name)
        if experts is not None and getattr(experts, "is_transposed", False) and tensor.ndim == 3:
            # Aria keeps [experts, in, out]; vLLM's expert layers take [experts, out, in].
            tensor = tensor.transpose(1, 2)
        yield served, tensor

    def _left_to_vllm(self, known: Known) -> bool:
        """Whether vLLM loads the parts by themselves: single experts, of which an expert-parallel rank needs a few only."""
        assert known.pattern is not None
        if "*." not in known.pattern or self._replaced(known.name) is None:
            return False
        return known.plain.split(".")[-2:-1] != [] and known.plain.split(".")[-2] in EXPERT_PARTS

    def _replaced(self, name: str) -> Any:
        """The skeleton's expert module that `name` belongs to, where vLLM has put its own in its place; else None."""
        path = name.rpartition(".")[0]
        served = self._places.served(name)
        if served is None or path.rpartition(".")[2] != "experts":
            return None
        original = self._skeleton.get_submodule(path)
        try:
            present = self._model.get_submodule(served.rpartition(".")[0])
        except AttributeError:
            return None
        return None if isinstance(present, type(original)) else original

    def _check(self, incomplete: int) -> None:
        at_fault = type(self._skeleton).__name__
        if incomplete:
            name, parts = next(iter(self._parts.items()))
            raise UnsupportedModelError(
                at_fault,
                found=f"{len(parts.tensors)} parts of the weight {name} in the checkpoint, as {parts.tensors[0][0]},"
                f" with {sum(part[2].numel() for part in parts.tensors)} elements ({incomplete} such weights)",
                expected=f"parts with {parts.expected} elements together",
                do="The checkpoint is incomplete, or its config isn't its own. Compare the config with the weights' shapes.",
            )
        if self.unknown:
            more = f" and {len(self.unknown) - SHOWN} more" if len(self.unknown) > SHOWN else ""
            raise UnsupportedModelError(
                at_fault,
                found=f"weights in the checkpoint that the model has no place for: {', '.join(self.unknown[:SHOWN])}{more}",
                expected="names that transformers' own loading would place",
                do="The checkpoint was made for another class or transformers release; `architectures` in its config names"
                " the class that was tried.",
            )


def natural(name: str) -> list[tuple[int, int | str]]:
    """A key that sorts numbers by value: expert 2 before expert 10."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"\.", name)]
