"""Several items in one HF call, where the split into items is certain: the same items as N calls give, bit for bit.

Takes what the processor gave for A, B and A in one call and for each alone; gives the `JointSplit` that was seen to hold, and by
it the items of later calls. A call costs about a millisecond besides its items' own work, which is all that can be saved; so
only splits that follow from the fields themselves are taken (one row an item, or rows counted by a grid), and where an item's
rows are only known once it was processed (tiles), items are processed alone. Not for how the encoder joins items
(`hf_backend.encoding.buckets`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.placeholders.base import Replacement
from hf_backend.records import FieldLayout, Item, Joining, JointSplit

if TYPE_CHECKING:
    from hf_backend.placeholders.base import Tokenizer
    from hf_backend.records import FieldValue


PICTURE_DIMS = 4
"""Dimensions of a field that holds whole pictures: row, channel, height, width. Another one is for tiles, of which Perception LM
gives one to some pictures and several to others, both padded to one number in a joint call."""


def joint_split(first: Item, second: Item, layouts: Mapping[str, FieldLayout]) -> JointSplit | None:
    """The split that fits two items of different sizes, or None where none is certain.

    A field has one row an item, or as many as the product of a grid says (Qwen2-VL: `image_grid_thw`). With rows of one an
    item could still have been padded in another dimension (LLaVA-NeXT pads tiles); so every item must then have one and the
    same number of embeddings, or the field must be a grid or a plain number.
    """
    if any(layout.joining is not Joining.CONCATENATED or not layout.exact for layout in layouts.values()):
        return None
    items = (first, second)
    grids = [name for name, layout in layouts.items() if all(_is_grid(item.fields[name], layout) for item in items)]
    counted_by: dict[str, str | None] = {}
    for name, layout in layouts.items():
        rows = [_rows(item.fields[name], layout) for item in items]
        fitting = [
            grid for grid in grids if rows == [_product(item.fields[grid]) for item in items] and rows[0] != rows[1]
        ]
        if fitting:
            counted_by[name] = fitting[0]
        elif rows == [1, 1]:
            counted_by[name] = None
        else:
            return None
    num_embeds = {item.expansion.num_embeds for item in items}
    described = set(counted_by.values())
    if all(
        grid is not None or name in described or torch.as_tensor(first.fields[name]).ndim == 1
        for name, grid in counted_by.items()
    ):
        return JointSplit(counted_by, num_embeds=None)
    tiled = any(torch.as_tensor(value).ndim > PICTURE_DIMS for value in first.fields.values())
    return JointSplit(counted_by, num_embeds.pop()) if len(num_embeds) == 1 and not tiled else None


def split_fields(
    fields: Mapping[str, "FieldValue"], split: JointSplit, layouts: Mapping[str, FieldLayout], count: int
) -> list[dict[str, torch.Tensor]] | None:
    """The fields of each of `count` items of one call, each with storage of its own; None where sizes don't add up."""
    if not split.counted_by.keys() <= fields.keys():
        return None
    parts: list[dict[str, torch.Tensor]] = [{} for _ in range(count)]
    for name, grid in split.counted_by.items():
        value = fields[name]
        if not isinstance(value, torch.Tensor):
            return None
        if grid is None:
            rows = [1] * count
        else:
            counts = fields[grid]
            if not isinstance(counts, torch.Tensor) or counts.shape[0] != count:
                return None
            rows = [_product(row) for row in counts]
        dim = layouts[name].dim
        if value.ndim <= dim or value.shape[dim] != sum(rows):
            return None
        # Cloned: a view would keep the whole call's tensor alive in the cache.
        for part, piece in zip(parts, value.split(rows, dim), strict=True):
            part[name] = piece.clone()
    return parts


def expansions_of(
    output: Mapping[str, Any], modality: str, count: int, tokenizer: "Tokenizer"
) -> list[Replacement] | None:
    """Each item's expansion, where the processor says that it replaced one text for each of `count` items."""
    prompts = output.get("text_replacement_offsets")
    if prompts is None or len(prompts) != 1:
        return None
    entries = [entry for entry in prompts[0] if entry["type"] == modality]
    if len(entries) != count or len({entry["text"] for entry in entries}) != 1:
        return None
    texts = [str(entry["replacement"]) for entry in entries]
    encoded = {text: tuple(tokenizer.encode(text, add_special_tokens=False)) for text in set(texts)}
    return [Replacement(entries[0]["text"], encoded[text]) for text in texts]


def same_items(ones: Sequence[Item], others: Sequence[Item]) -> bool:
    """Whether the two lists of items are equal bit for bit."""
    return len(ones) == len(others) and all(
        one.expansion == other.expansion
        and one.fields.keys() == other.fields.keys()
        and all(_equal(one.fields[name], other.fields[name]) for name in one.fields)
        for one, other in zip(ones, others, strict=True)
    )


def _equal(one: "FieldValue", other: "FieldValue") -> bool:
    return (
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and one.dtype == other.dtype
        and torch.equal(one, other)
    )


def _rows(value: "FieldValue", layout: FieldLayout) -> int:
    return value.shape[layout.dim] if isinstance(value, torch.Tensor) and value.ndim > layout.dim else -1


def _is_grid(value: "FieldValue", layout: FieldLayout) -> bool:
    """Whether a field is one row of a few whole numbers."""
    return (
        isinstance(value, torch.Tensor)
        and layout.dim == 0
        and value.ndim == 2
        and value.shape[0] == 1
        and not value.is_floating_point()
    )


def _product(value: "FieldValue") -> int:
    return math.prod(int(number) for number in torch.as_tensor(value).flatten().tolist())
