"""Whether an encoder takes no notice of padding, so that items of several sizes may share a call.

Takes a function that runs the encoder on joined fields, items of different sizes and what each gives alone; gives the dimensions
in which items may be padded to one size, or None. Equal embeddings aren't enough: in bfloat16 a little of the padding would pass
for rounding. What the padding holds must make no difference, bit for bit (Pixtral cuts it off, a mask hides it from Gemma 4's audio
tower).
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from hf_backend.encoding.buckets import Dims, Fields, bucket, join
from hf_backend.encoding.items import EncoderItem
from hf_backend.records import FieldLayout, Joining

if TYPE_CHECKING:
    from hf_backend.records import FieldValue

GARBAGE = 3.0
"""What nothing may be made of: of the size of a normalised pixel or a feature of sound."""
SIDED = 4
"""Dimensions from which on a field's last two are the sides of pictures: item, channel, height, width."""
ROUNDING = 1000
"""Times the dtype's epsilon: another number of rows or of masked keys is another order of additions."""


def find_padded(
    modality: str,
    probes: Sequence[EncoderItem],
    alone: Sequence[torch.Tensor],
    layouts: Mapping[str, FieldLayout],
    run: "Callable[[Sequence[EncoderItem], Mapping[str, FieldValue]], torch.Tensor]",
    of_many_lengths: Callable[[], Sequence[EncoderItem]],
) -> Dims | None:
    """In which dimensions items of `modality` may be padded; None also where they join as they are, or nothing tells how (videos).

    `alone` are the embeddings of `probes`, [rows, hidden size] each; `of_many_lengths` makes more clips, where these two pass.
    """
    dims_of = {"image": sides, "audio": lengths}.get(modality)
    if dims_of is None or len(bucket([item.fields for item in probes], layouts, joinable=True)) == 1:
        return None
    items, given = [*probes, probes[0]], [*alone, alone[0]]

    def found() -> Dims | None:
        fields = [item.fields for item in items]
        return padded_dims(functools.partial(run, items), fields, given, layouts, dims_of(fields, layouts))

    dims = found()
    if dims is None or modality != "audio":
        return dims
    # Two clips may pass by chance: Gemma 3n's tower halves lengths again and again, and what is left of an odd one reaches into the
    # padding.
    more = of_many_lengths()
    items += more
    given += [run([item], item.fields) for item in more]
    return found()


def sides(items: Sequence[Fields], layouts: Mapping[str, FieldLayout]) -> Dims:
    """The dimensions of pictures that padding may fill: height and width, and nothing else. What models do with another number
    of tiles two probe items don't show (Phi-4-multimodal)."""
    return {
        name: frozenset({value.ndim - 2, value.ndim - 1})
        for name, value in items[0].items()
        if isinstance(value, torch.Tensor) and value.ndim >= SIDED and _joins(layouts[name])
    }


def lengths(items: Sequence[Fields], layouts: Mapping[str, FieldLayout]) -> Dims:
    """The dimensions of clips that padding may fill: those in which `items`, of many lengths, were seen to differ."""
    differing: dict[str, frozenset[int]] = {}
    for name in items[0]:
        shapes = [value.shape for fields in items if isinstance(value := fields[name], torch.Tensor)]
        if len(shapes) == len(items) and _joins(layouts[name]):
            sizes = enumerate(zip(*shapes, strict=True))
            differing[name] = frozenset(dim for dim, seen in sizes if len(set(seen)) > 1 and dim != layouts[name].dim)
    return differing


def _joins(layout: FieldLayout) -> bool:
    return layout.joining is Joining.CONCATENATED


def padded_dims(
    run: "Callable[[Mapping[str, FieldValue]], torch.Tensor]",
    items: Sequence[Fields],
    alone: Sequence[torch.Tensor],
    layouts: Mapping[str, FieldLayout],
    dims: Dims,
) -> Dims | None:
    """`dims` if `items`, padded there to one size, give what they give `alone` whatever the padding holds; else None."""
    if len(bucket(items, layouts, joinable=True, padded=dims)) > 1:
        return None
    expected = torch.cat(list(alone))
    try:
        zeros, garbage = (run(join(items, layouts, fill)) for fill in (0.0, GARBAGE))
    except (ValueError, TypeError, RuntimeError, IndexError):
        return None  # sizes that can't be padded: a grid says another number of patches
    return dims if _close(zeros, expected) and torch.equal(zeros, garbage) else None


def _close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    if found.shape != expected.shape:
        return False
    tolerance = min(ROUNDING * torch.finfo(expected.dtype).eps, 1e-2)
    return bool(((found - expected).abs() <= tolerance * expected.abs().max()).all())
