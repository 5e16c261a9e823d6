"""Which items may share an encoder call, and their fields joined.

Takes the items' fields and the measured layouts; gives groups of item indices, and one set of arguments a group. Nothing is
padded, unless the encoder was seen to take no notice of padding, and in which dimensions (`hf_backend.encoding.ragged`). Pure.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from hf_backend.records import FieldLayout, Joining

if TYPE_CHECKING:
    from hf_backend.records import FieldValue

Fields = Mapping[str, "FieldValue"]

Dims = Mapping[str, frozenset[int]]
"""Field to the dimensions, counted from 0, in which items may be padded to one size."""

SMALL = 2**20
"""Numbers in a padded call that costs less than several calls would, whatever is padding in it."""
WASTE = 1.5
"""How many times as large a larger call may get by padding."""


def bucket(
    items: Sequence[Fields], layouts: Mapping[str, FieldLayout], joinable: bool, padded: Dims | None = None
) -> list[list[int]]:
    """Indices of items that agree in everything but the joining dimension of each field, in order of first appearance; where
    they may be `padded`, of several such groups as long as that is cheaper than calls of their own.

    Packed layouts (Qwen2-VL: rows of patches) agree whatever the size of the pictures: one bucket. Stacked ones
    (Pixtral: height and width) agree when the sizes do. Items that don't join are buckets of their own.
    """
    if not joinable:
        return [[index] for index in range(len(items))]
    groups: dict[Hashable, list[int]] = {}
    for index, fields in enumerate(items):
        key = tuple(sorted((name, _key(value, layouts[name])) for name, value in fields.items()))
        groups.setdefault(key, []).append(index)
    exact = list(groups.values())
    return _merged(exact, items, layouts, padded) if padded is not None and len(exact) > 1 else exact


def _key(value: "FieldValue", layout: FieldLayout) -> Hashable:
    """What has to be equal for two values to join."""
    if isinstance(value, list):
        return tuple(("listed", *_key_of_tensor(part, FieldLayout(Joining.CONCATENATED, -1))) for part in value[:1])
    return _key_of_tensor(value, layout)


def _key_of_tensor(value: torch.Tensor, layout: FieldLayout) -> tuple[Hashable, ...]:
    if layout.joining is Joining.CONSTANT:
        return ("constant", str(value.dtype), str(value.tolist()))
    others = tuple(size for dim, size in enumerate(value.shape) if dim != layout.dim)
    return ("joined", str(value.dtype), value.ndim, others)


def _merged(
    exact: Sequence[list[int]], items: Sequence[Fields], layouts: Mapping[str, FieldLayout], dims: Dims
) -> list[list[int]]:
    """Groups of items of one size each, largest first, put together while the padded call stays small."""
    merged: list[list[int]] = []
    numbers = 0
    for group in sorted(exact, key=lambda group: -size_of(items[group[0]])):
        own = len(group) * size_of(items[group[0]])
        if merged and _kind(items[merged[-1][0]], layouts, dims) == _kind(items[group[0]], layouts, dims):
            together = [*merged[-1], *group]
            padded = padded_size([items[index] for index in together]) * len(together)
            if padded <= max(SMALL, WASTE * (numbers + own)):
                merged[-1] = sorted(together)
                numbers += own
                continue
        merged.append(group)
        numbers = own
    return merged


def _kind(fields: Fields, layouts: Mapping[str, FieldLayout], dims: Dims) -> Hashable:
    """What may not differ between items that are padded: everything but `dims`."""
    return tuple(
        sorted((name, _key_but(value, layouts[name], dims.get(name, frozenset()))) for name, value in fields.items())
    )


def _key_but(value: "FieldValue", layout: FieldLayout, dims: frozenset[int]) -> Hashable:
    if not isinstance(value, torch.Tensor) or not dims or layout.joining is Joining.CONSTANT:
        return _key(value, layout)
    others = tuple(size for dim, size in enumerate(value.shape) if dim != layout.dim and dim not in dims)
    return ("padded", str(value.dtype), value.ndim, others)


def size_of(fields: Fields) -> int:
    """How many numbers an item's fields hold."""
    return sum(part.numel() for value in fields.values() for part in (value if isinstance(value, list) else [value]))


def padded_size(items: Sequence[Fields]) -> int:
    """How many numbers an item's fields hold when it is padded to the largest of `items` in every dimension."""
    shapes = zip(*([_shape(value) for value in fields.values()] for fields in items), strict=True)
    return sum(math.prod(max(sizes) for sizes in zip(*of_field, strict=True)) for of_field in shapes)


def _shape(value: "FieldValue") -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else (sum(part.numel() for part in value),)


def join(
    items: Sequence[Fields], layouts: Mapping[str, FieldLayout], fill: float | None = None
) -> dict[str, "FieldValue"]:
    """The fields of a bucket's items as one call's arguments; what differs in size is padded with `fill` at its end, and an
    error (torch's) where that is None.

    A single item's values are handed on as they are, without a copy.
    """
    if len(items) == 1:
        return dict(items[0])
    return {name: _join([fields[name] for fields in items], layouts[name], fill) for name in items[0]}


def _join(values: Sequence["FieldValue"], layout: FieldLayout, fill: float | None) -> "FieldValue":
    if layout.joining is Joining.CONSTANT:
        return values[0]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if len(tensors) < len(values):
        return [part for value in values for part in value]
    if fill is None:
        return torch.cat(tensors, dim=layout.dim)
    dim = layout.dim % tensors[0].ndim
    largest = [max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
    return torch.cat([_padded(tensor, dim, largest, fill) for tensor in tensors], dim=layout.dim)


def _padded(tensor: torch.Tensor, dim: int, largest: Sequence[int], fill: float) -> torch.Tensor:
    shape = [
        size if index == dim else most for index, (size, most) in enumerate(zip(tensor.shape, largest, strict=True))
    ]
    if list(tensor.shape) == shape:
        return tensor
    # Nothing but zeros says "not here" in a mask or a number of something.
    padded = tensor.new_full(shape, fill if tensor.is_floating_point() else 0)
    padded[tuple(slice(size) for size in tensor.shape)] = tensor
    return padded
