"""How fields of several items join: pure functions over what a processor gave for A alone, B alone, and A and B together.

Takes three values of one field; gives its `FieldLayout`, or None where no rule fits. The idea is one measurement: the
dimension in which sizes add up is the one that joins (0 for most families, 1 for Idefics3, 3 for MiniCPM-V 4.6).
"""

from typing import TYPE_CHECKING

import torch

from hf_backend.records import FieldLayout, Joining

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


def layout_of(a: "FieldValue", b: "FieldValue", both: "FieldValue") -> FieldLayout | None:
    """Layout of a field that is `a` for one item, `b` for another and `both` for the two in one call.

    A list counts as a batch dimension whose entries differ in shape: LLaVA-NeXT without padding gives a tensor for one
    image and may give a list for two.
    """
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and isinstance(both, torch.Tensor):
        return _layout_of_tensors(a, b, both)
    parts = [*_rows(a), *_rows(b)]
    joined = _rows(both)
    if len(parts) != len(joined):
        return None
    exact = all(part.shape == row.shape and torch.equal(part, row) for part, row in zip(parts, joined, strict=True))
    return FieldLayout(Joining.CONCATENATED, dim=0, exact=exact)


def _rows(value: "FieldValue") -> list[torch.Tensor]:
    return list(value)


def _layout_of_tensors(a: torch.Tensor, b: torch.Tensor, both: torch.Tensor) -> FieldLayout | None:
    if a.ndim == b.ndim == both.ndim:
        candidates = [
            FieldLayout(Joining.CONCATENATED, dim, exact=_composes(a, b, both, dim))
            for dim in range(both.ndim)
            if a.shape[dim] + b.shape[dim] == both.shape[dim] and _others_padded(a, b, both, dim)
        ]
        # Sizes may add up in a second dimension by accident; contents then decide.
        for candidate in candidates:
            if candidate.exact:
                return candidate
        if candidates:
            return candidates[0]
    if a.shape == b.shape == both.shape and torch.equal(a, b) and torch.equal(a, both):
        return FieldLayout(Joining.CONSTANT)
    return None


def _others_padded(a: torch.Tensor, b: torch.Tensor, both: torch.Tensor, dim: int) -> bool:
    """Whether every other dimension is that of the larger item: nothing was cut and nothing else joined."""
    return all(max(a.shape[other], b.shape[other]) == both.shape[other] for other in range(both.ndim) if other != dim)


def _composes(a: torch.Tensor, b: torch.Tensor, both: torch.Tensor, dim: int) -> bool:
    if any(a.shape[other] != b.shape[other] for other in range(both.ndim) if other != dim):
        return False
    return torch.equal(torch.cat([a, b], dim), both)
