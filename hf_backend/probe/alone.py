"""`alone(item)`: what an HF processor makes of one item by itself.

Takes a processor (through vLLM's processing info), a modality, a strategy and one item; gives the expansion and the
item's fields (`hf_backend.records.Item`). An item's data can't depend on its neighbours, because there are none (C1).
`process` is the same call for any text and any number of items, for the probes that compare.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hf_backend.errors import RequestError
from hf_backend.modalities import Modality
from hf_backend.placeholders.base import Strategy
from hf_backend.probe import calls
from hf_backend.probe.arguments import arguments
from hf_backend.probe.parts import rate_options
from hf_backend.records import Expansion, Item

if TYPE_CHECKING:
    from hf_backend.records import FieldValue
    from hf_backend.upstream import BaseProcessingInfo

NEVER_FIELDS = frozenset({"input_ids", "text_replacement_offsets"})
"""Outputs that are never item fields: the prompt itself, and the strategy's own."""


PROCESSOR_ERRORS = (ValueError, TypeError, RuntimeError, IndexError, ZeroDivisionError, AttributeError)
"""What HF processors were seen to raise for items they can't process."""


@dataclass(frozen=True, slots=True)
class Processed:
    """What the processor returned for one prompt."""

    ids: list[int]
    """The expanded prompt's."""
    output: Mapping[str, Any]
    fields: dict[str, "FieldValue"]


def process(
    info: "BaseProcessingInfo",
    modality: Modality,
    strategy: Strategy,
    text: str | list[str],
    items: Sequence[object],
    hf_kwargs: Mapping[str, object],
) -> Processed:
    """Process `text`, a prompt or several, with `items` of one modality in one HF call.

    Fields that aren't tensors, nor numbers that make a tensor, are left out: a model can't be given them anyway.
    """
    data, defaults = arguments(modality, items)
    defaults |= rate_options(info.get_hf_processor(), modality)
    output = calls.call(info, {"text": text, **data, **strategy.call_arguments}, hf_kwargs, defaults)
    fields = {
        name: value for name, raw in output.items() if name not in NEVER_FIELDS and (value := as_field(raw)) is not None
    }
    return Processed(torch.as_tensor(output["input_ids"]).flatten().tolist(), output, fields)


def as_field(raw: Any) -> "FieldValue | None":
    """`raw` as a tensor, or as a list of tensors where its entries differ in shape (unpadded items); else None."""
    if isinstance(raw, torch.Tensor):
        return raw
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf":
        return torch.from_numpy(raw)
    if isinstance(raw, (bool, int, float)):
        return torch.tensor(raw)
    if not isinstance(raw, (list, tuple)) or not raw:
        return None
    parts = [as_field(entry) for entry in raw]
    tensors = [part for part in parts if isinstance(part, torch.Tensor)]
    if len(tensors) != len(parts):
        return None
    if all(tensor.shape == tensors[0].shape and tensor.dtype == tensors[0].dtype for tensor in tensors):
        return torch.stack(tensors)
    return tensors


@dataclass(frozen=True, slots=True)
class Alone:
    """`alone(item)` for one processor and modality, as the profile found it."""

    info: "BaseProcessingInfo"
    modality: Modality
    strategy: Strategy
    placeholder: str
    """The text that stands for one item."""
    embed_ids: frozenset[int]
    text_fields: frozenset[str]

    def __call__(self, item: object, hf_kwargs: Mapping[str, object]) -> Item:
        """Process `item` with nothing beside it. Raises `RequestError` if the processor refuses it."""
        try:
            processed = process(self.info, self.modality, self.strategy, self.placeholder, [item], hf_kwargs)
        except PROCESSOR_ERRORS as error:
            cause = error.__cause__ or error
            raise RequestError(
                type(self.info.get_hf_processor()).__name__,
                found=f"{self.modality.name} {describe(item)}, on which it failed with {type(cause).__name__}: {cause}",
                expected=f"one {self.modality.name} it can process with mm_processor_kwargs={dict(hf_kwargs)}",
                do=f"Send another {self.modality.name}, or other mm_processor_kwargs.",
            ) from error
        replacement = self.strategy.read(
            processed.output, processed.ids, self.placeholder, self.modality.name, self.info.get_tokenizer()
        )
        if replacement is None:
            raise RequestError(
                type(self.info.get_hf_processor()).__name__,
                found=f"no single replacement of {self.placeholder!r} for one {self.modality.name} ({describe(item)})",
                expected="exactly one, as for the probe at start-up",
                do="Report the processor; until it is mended the item can't be served.",
            )
        return self.item(item, replacement.placeholder, replacement.ids, processed.fields)

    def item(
        self, item: object, placeholder: str, ids: tuple[int, ...], all_fields: Mapping[str, "FieldValue"]
    ) -> Item:
        """The record of `item`, which took the place of `placeholder` with `ids`; its fields without those that follow the
        text. Raises `RequestError` where no embedding has a place."""
        expansion = Expansion(ids=ids, is_embed=tuple(token in self.embed_ids for token in ids))
        if expansion.num_embeds == 0:
            raise RequestError(
                type(self.info.get_hf_processor()).__name__,
                found=f"an expansion of {len(expansion.ids)} tokens without any of {sorted(self.embed_ids)}"
                f" for {self.modality.name} {describe(item)}",
                expected="at least one token that an embedding replaces",
                do=f"Send a larger {self.modality.name}, or other mm_processor_kwargs.",
            )
        fields = {name: value for name, value in all_fields.items() if name not in self.text_fields}
        return Item(placeholder=placeholder, expansion=expansion, fields=fields)


def describe(item: object) -> str:
    """What an error says of an item: its kind and size, never its contents."""
    if isinstance(item, tuple):
        return describe(item[0])
    for attribute in ("size", "shape"):
        size = getattr(item, attribute, None)
        if isinstance(size, (tuple, torch.Size)):
            return f"{type(item).__name__} of size {'x'.join(map(str, size))}"
    return type(item).__name__
