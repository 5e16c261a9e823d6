"""From the keyword arguments of `embed_multimodal` back to one record an item.

Takes what vLLM batched (a tensor with a leading item dimension where all items agree in shape, else a list); gives per
item its fields and its embedding count. Pure; nothing is copied.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hf_backend.records import num_embeds_field

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


@dataclass(frozen=True, slots=True)
class EncoderItem:
    """One item as the encoding room sees it."""

    fields: Mapping[str, "FieldValue"]
    num_embeds: int


def take_apart(kwargs: Mapping[str, Any], modalities: Iterable[str]) -> dict[str, list[EncoderItem]]:
    """Items of each modality of `modalities` that `kwargs` holds, in request order.

    vLLM batches one modality at a time, so that all other fields belong to the modality whose count field is there.
    Raises `ValueError` where a field has another number of entries than there are items.
    """
    present = [modality for modality in modalities if num_embeds_field(modality) in kwargs]
    if len(present) > 1:
        raise ValueError(f"items of {present} in one call; vLLM batches one modality at a time")
    return {modality: _items(kwargs, num_embeds_field(modality)) for modality in present}


def _items(kwargs: Mapping[str, Any], count_field: str) -> list[EncoderItem]:
    counts: Sequence[Any] = kwargs[count_field]
    fields = {name: value for name, value in kwargs.items() if name != count_field}
    for name, value in fields.items():
        if len(value) != len(counts):
            raise ValueError(f"`{name}` has {len(value)} entries for {len(counts)} items")
    return [
        EncoderItem({name: value[index] for name, value in fields.items()}, int(count))
        for index, count in enumerate(counts)
    ]
