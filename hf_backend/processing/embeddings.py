"""Embeddings that a request brings along instead of items (`--enable-mm-embeds`).

Takes a tensor of embeddings an item, for models whose positions follow an item's size with the fields that tell it (a picture's
grid); gives the item as if a processor had made it: an expansion of as many places as there are rows, within the frame that was
measured around a modality's embeddings, and the rows as its one field beside those. The encoder isn't called for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from hf_backend.errors import RequestError
from hf_backend.records import EMBEDS, Expansion, Item, ModalityProfile, may_make_positions

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


@dataclass(frozen=True, slots=True)
class EmbeddingsRule:
    """What embeddings have to come with, as seen on two items that the processor made."""

    in_one_run: bool = True
    """Whether an item's embeddings stand side by side in its expansion; not where lines of a picture end in tokens of their own
    (Pixtral), since rows don't tell how long the lines are."""
    fields: frozenset[str] = frozenset()
    """Fields that positions are made from."""
    sized_by: Mapping[str, float] = field(default_factory=dict)
    """Field to how many times an item's rows are in its numbers, multiplied."""

    @classmethod
    def of(cls, items: Sequence[Item], positions_need_fields: bool) -> "EmbeddingsRule":
        """The rule of the modality of `items`; `positions_need_fields`: M-RoPE models take a picture's grid."""
        in_one_run = all(
            item.expansion.is_embed
            == (False,) * first
            + (True,) * item.expansion.num_embeds
            + (False,) * (len(item.expansion.ids) - first - item.expansion.num_embeds)
            for item in items
            for first in [item.expansion.is_embed.index(True)]
        )
        if not positions_need_fields:
            return cls(in_one_run)
        names = frozenset(name for name, value in items[0].fields.items() if may_make_positions(value))
        sized_by = {}
        for name in names:
            times = {_product(item.fields[name]) / item.expansion.num_embeds for item in items}
            if len(times) == 1 and len({item.expansion.num_embeds for item in items}) > 1:
                sized_by[name] = times.pop()
        return cls(in_one_run, names, sized_by)


def item_of_embeddings(
    given: Any, profile: ModalityProfile, processor_class: str, *, hidden_size: int, rule: EmbeddingsRule
) -> Item:
    """The item that `given` stands for: embeddings, [count, hidden size], or a mapping of them as `EMBEDS` with other fields.

    `hidden_size` is the width of the text model's embeddings. Raises `RequestError` for another shape, without a field that `rule`
    names, and where fields and rows are of items of different sizes.
    """
    fields: dict[str, FieldValue] = dict(given) if isinstance(given, Mapping) else {EMBEDS: torch.as_tensor(given)}
    embeddings = torch.as_tensor(fields[EMBEDS])
    what = f"pre-computed {profile.modality} embeddings"
    if not rule.in_one_run:
        raise RequestError(
            processor_class,
            found=what,
            expected=f"{profile.modality} items",
            do="This model has tokens of its own between an item's embeddings, and their places don't follow from the embeddings;"
            " send the items themselves.",
        )
    if fields.keys() - {EMBEDS} != rule.fields:
        raise RequestError(
            processor_class,
            found=f"{what} with {_listed(fields.keys() - {EMBEDS})}",
            expected=f"{_listed(rule.fields)} beside them",
            do="This model's positions follow the size of an item: send a dictionary of"
            f" {profile.modality}_embeds and these, as the HF processor gives them."
            if rule.fields
            else "Send one tensor of embeddings an item.",
        )
    if embeddings.ndim != 2 or embeddings.shape[0] == 0 or embeddings.shape[1] != hidden_size:
        raise RequestError(
            processor_class,
            found=f"{profile.modality} embeddings of shape {tuple(embeddings.shape)}",
            expected=f"[count, hidden size] = [at least 1, {hidden_size}] for each item",
            do="Send one such tensor an item.",
        )
    count = embeddings.shape[0]
    for name, times in rule.sized_by.items():
        if _product(fields[name]) != times * count:
            raise RequestError(
                processor_class,
                found=f"{count} rows of {what} with {name} = {torch.as_tensor(fields[name]).tolist()}",
                expected=f"{_product(fields[name]) / times:g} rows",
                do="Rows and sizes have to be of the same item, in the same order.",
            )
    head, tail = profile.frame
    return Item(
        placeholder=profile.placeholder,
        expansion=Expansion(
            ids=(*head, *[min(profile.embed_ids)] * count, *tail),
            is_embed=(*[False] * len(head), *[True] * count, *[False] * len(tail)),
        ),
        fields=fields,
    )


def split_fields(data: Mapping[str, Any], modality: str) -> list[dict[str, "FieldValue"]]:
    """One mapping an item of a request's dictionary: `{modality}_embeds`, a tensor an item or all rows in one, beside fields with
    an entry an item. Raises `ValueError` where these aren't told apart by numbers of entries and sizes."""
    name = f"{modality}_embeds"
    if name not in data:
        raise ValueError(f"found {_listed(data)} for {modality}; expected {name} among them")
    fields = {each: torch.as_tensor(value) for each, value in data.items() if each != name}
    given = data[name]
    counts = {len(value) for value in fields.values() if value.ndim}
    if len(counts) > 1:
        raise ValueError(f"found {_listed(fields)} with {sorted(counts)} entries; expected one an item in each")
    count = next(iter(counts), len(given) if isinstance(given, (list, tuple)) else 1)
    if isinstance(given, torch.Tensor) and given.ndim == 2 and count != 1:
        sizes = [value.prod(-1) for value in fields.values() if value.ndim == 2 and not value.is_floating_point()]
        shares = sizes[0] * len(given) / sizes[0].sum() if sizes else torch.zeros(0)
        if not len(shares) or bool((shares != shares.round()).any()):
            raise ValueError(
                f"found {len(given)} rows of {name} for {count} items; expected a list of one tensor an item"
            )
        given = given.split(shares.long().tolist())
    rows = [given] if isinstance(given, torch.Tensor) and given.ndim == 2 else list(given)
    if len(rows) != count:
        raise ValueError(f"found {len(rows)} entries of {name}; expected {count}, as in {_listed(fields)}")
    return [
        {EMBEDS: torch.as_tensor(row), **{each: value[index : index + 1] for each, value in fields.items()}}
        for index, row in enumerate(rows)
    ]


def _product(value: "FieldValue") -> float:
    return float(torch.as_tensor(value).double().prod())


def _listed(names: Any) -> str:
    return ", ".join(sorted(names)) or "nothing"
