"""From the keyword arguments of `embed_multimodal` back to one record an item.

Takes what vLLM batched (a tensor with a leading item dimension where all items agree in shape, else a list); gives per
item its fields and its embedding count. Pure; nothing is copied.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.records import EXPANSION, NUM_EMBEDS, Item, wire_name

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


@dataclass(frozen=True, slots=True)
class EncoderItem:
    """One item as the encoding room sees it."""

    fields: Mapping[str, "FieldValue"]
    num_embeds: int
    expansion: torch.Tensor
    """int64 [tokens]."""


def encoder_item(item: Item) -> EncoderItem:
    """What the encoding room sees of an item that a processor just made."""
    return EncoderItem(item.fields, item.expansion.num_embeds, torch.tensor(item.expansion.ids))


def take_apart(kwargs: Mapping[str, Any], modalities: Iterable[str]) -> dict[str, list[EncoderItem]]:
    """Items of each modality of `modalities` that `kwargs` holds, in request order.

    Raises `ValueError` where a field has another number of entries than there are items.
    """
    return {modality: _items(kwargs, modality) for modality in modalities if wire_name(modality, NUM_EMBEDS) in kwargs}


def _items(kwargs: Mapping[str, Any], modality: str) -> list[EncoderItem]:
    prefix = wire_name(modality, "")
    fields = {wire.removeprefix(prefix): value for wire, value in kwargs.items() if wire.startswith(prefix)}
    counts: Sequence[Any] = fields.pop(NUM_EMBEDS)
    expansions: Sequence[Any] = fields.pop(EXPANSION)
    for name, value in fields.items():
        if len(value) != len(counts):
            raise ValueError(f"`{name}` has {len(value)} entries for {len(counts)} {modality} items")
    return [
        EncoderItem({name: value[index] for name, value in fields.items()}, int(count), expansions[index])
        for index, count in enumerate(counts)
    ]
