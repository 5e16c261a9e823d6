"""Which items may share an encoder call, and their fields joined: no padding, whatever their sizes.

Takes the items' fields and the measured layouts; gives groups of item indices, and one set of arguments a group. Pure.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from hf_backend.records import FieldLayout, Joining

if TYPE_CHECKING:
    from hf_backend.records import FieldValue

Fields = Mapping[str, "FieldValue"]


def bucket(items: Sequence[Fields], layouts: Mapping[str, FieldLayout], joinable: bool) -> list[list[int]]:
    """Indices of items that agree in everything but the joining dimension of each field, in order of first appearance.

    Packed layouts (Qwen2-VL: rows of patches) agree whatever the size of the pictures: one bucket. Stacked ones
    (Pixtral: height and width) agree when the sizes do. Items that don't join are buckets of their own.
    """
    if not joinable:
        return [[index] for index in range(len(items))]
    groups: dict[Hashable, list[int]] = {}
    for index, fields in enumerate(items):
        key = tuple(sorted((name, _key(value, layouts[name])) for name, value in fields.items()))
        groups.setdefault(key, []).append(index)
    return list(groups.values())


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


def join(items: Sequence[Fields], layouts: Mapping[str, FieldLayout]) -> dict[str, "FieldValue"]:
    """The fields of a bucket's items as one call's arguments.

    A single item's values are handed on as they are, without a copy.
    """
    if len(items) == 1:
        return dict(items[0])
    return {name: _join([fields[name] for fields in items], layouts[name]) for name in items[0]}


def _join(values: Sequence["FieldValue"], layout: FieldLayout) -> "FieldValue":
    if layout.joining is Joining.CONSTANT:
        return values[0]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if len(tensors) == len(values):
        return torch.cat(tensors, dim=layout.dim)
    return [part for value in values for part in value]
