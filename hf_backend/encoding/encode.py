"""Encoding a step's items: bucket, one call a bucket or as few as fit into memory, exact split, request order restored.

Takes items, layouts and a function that runs the encoder; gives one tensor of embeddings an item (C8). The split is by
each item's own embedding count and a sum that doesn't fit is an error: nothing is padded or cut.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from hf_backend.encoding.buckets import Dims, bucket
from hf_backend.encoding.items import EncoderItem
from hf_backend.errors import EncoderOutputError
from hf_backend.records import FieldLayout

Chunks = Callable[[Sequence[EncoderItem]], Sequence[Sequence[int]]]
"""From one bucket's items to the indices of those that share a call (`hf_backend.encoding.memory`)."""

RunEncoder = Callable[[Sequence[EncoderItem]], torch.Tensor]
"""From one bucket's items to their embeddings, [rows, hidden size]."""


def encode(
    items: Sequence[EncoderItem],
    layouts: Mapping[str, FieldLayout],
    joinable: bool,
    run: RunEncoder,
    model_name: str,
    chunks: Chunks = lambda items: [list(range(len(items)))],
    padded: Dims | None = None,
) -> list[torch.Tensor]:
    """Embeddings of each item, [its embedding count, hidden size], in the order of `items`.

    A bucket's items share as few calls as `chunks` says; one, if it isn't given. `padded`: in which dimensions items of
    several sizes may be padded to share one.

    Raises `EncoderOutputError` naming the model, the items, and the rows found and expected.
    """
    embeddings: dict[int, torch.Tensor] = {}
    for indices in _calls(items, layouts, joinable, padded, chunks):
        counts = [items[index].num_embeds for index in indices]
        in_bucket = [items[index] for index in indices]
        # Mistral3 squeezes what a call returns, and a single embedding then has no rows left to split: twice, it has.
        rows = run(in_bucket * 2)[:1] if counts == [1] and joinable else run(in_bucket)
        if rows.shape[0] != sum(counts):
            raise EncoderOutputError(
                model_name,
                found=f"{rows.shape[0]} embeddings from the encoder for items {indices} of this step",
                expected=f"{sum(counts)}, for their {counts} places in the prompt",
                do="The processor and the model of this checkpoint disagree on sizes; check their patch, merge and tile"
                " settings.",
            )
        embeddings.update(zip(indices, rows.split(counts), strict=True))
    return [embeddings[index] for index in range(len(items))]


def _calls(
    items: Sequence[EncoderItem],
    layouts: Mapping[str, FieldLayout],
    joinable: bool,
    padded: Dims | None,
    chunks: Chunks,
) -> Iterator[list[int]]:
    """The indices of each call's items."""
    for indices in bucket([item.fields for item in items], layouts, joinable, padded):
        for chunk in chunks([items[index] for index in indices]):
            yield [indices[number] for number in chunk]
