"""How many items of a bucket go into one encoder call.

Takes runs of an encoder on probe items; measures the bytes that live while one runs, and fits them to the items' sizes. Takes
a bucket's items and a budget of bytes; gives chunks. Not for what the encoder's weights take, nor for vLLM's own limit on a
step's embeddings (`max_num_batched_tokens`).
"""

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

BUDGET_ENV = "HF_BACKEND_ENCODER_MIB"
"""Environment variable: what an encoder call may take beside weights and items, in MiB."""
CPU_BUDGET = 2**30
"""Bytes, where there is no accelerator whose free memory could be asked for."""
FREE_SHARE = 0.5
"""Of an accelerator's free memory: kernels have buffers that no tensor of a program shows."""


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of the storages that operations make, as long as they live; `peak` is the most at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation and count what it made."""
        # What it is given and wasn't made here was there before: a view of it is nothing new, as long as it lives.
        for storage in _storages((args, kwargs)):
            if storage._cdata not in self._known:
                self._known.add(storage._cdata)
                weakref.finalize(storage, self._known.discard, storage._cdata)
        output = func(*args, **(kwargs or {}))
        for storage in _storages(output):
            if storage._cdata in self._known:
                continue
            self._known.add(storage._cdata)
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._gone, storage._cdata, storage.nbytes())
        return output

    def _gone(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def _storages(values: Any) -> list[Any]:
    return [leaf.untyped_storage() for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes that live while an encoder runs, by an item's size: attention may grow with its square."""

    linear: float
    square: float = 0.0

    def of(self, size: int) -> float:
        """Bytes for an item with `size` numbers."""
        return self.linear * size + self.square * size**2

    @classmethod
    def fit(cls, alone: Sequence[tuple[int, int]], together: Sequence[int], joined: int) -> "Cost":
        """From size and bytes of two items alone, and the bytes of a call with items of the sizes `together`.

        Where that takes more than its items alone (a mask over all of them), every item counts for as many times more.
        """
        (small, few), (large, many) = sorted(alone)
        square = max(0.0, (many / large - few / small) / (large - small)) if large > small else 0.0
        linear = max(few / small - square * small, 0.0)
        cost = cls(linear, square)
        more = max(1.0, joined / sum(map(cost.of, together)))
        return cls(linear * more, square * more)


def chunks(sizes: Sequence[int], cost: Cost | None, budget: float) -> list[list[int]]:
    """Indices of items with `sizes` numbers, in order, in runs that cost at most `budget` bytes each; an item that costs more
    is one by itself."""
    made: list[list[int]] = []
    left = 0.0
    for index, size in enumerate(sizes):
        price = 0.0 if cost is None else cost.of(size)
        if not made or price > left:
            made.append([])
            left = budget
        made[-1].append(index)
        left -= price
    return made


def budget(device: torch.device) -> float:
    """Bytes that an encoder call may take on `device`, now. Raises `ValueError` for a setting that is no number."""
    if (setting := os.environ.get(BUDGET_ENV)) is not None:
        try:
            mib = float(setting)
        except ValueError:
            mib = 0.0
        if not mib > 0:
            raise ValueError(f"{BUDGET_ENV}: found {setting!r}; expected a number of MiB above 0.")
        return mib * 2**20
    if device.type == "cpu":
        return CPU_BUDGET
    free, _ = torch.accelerator.get_memory_info(device)
    cached = torch.accelerator.memory_reserved(device) - torch.accelerator.memory_allocated(device)
    return FREE_SHARE * (free + cached)
