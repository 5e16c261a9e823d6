"""Embeddings that a request brings along instead of items (`--enable-mm-embeds`).

Takes one tensor of embeddings; gives the item as if a processor had made it: an expansion of as many places as there are
rows, within the frame that was measured around a modality's embeddings, and the rows as its one field.
"""

import torch

from hf_backend.errors import RequestError
from hf_backend.records import EMBEDS, Expansion, Item, ModalityProfile


def item_of_embeddings(
    embeddings: torch.Tensor,
    profile: ModalityProfile,
    processor_class: str,
    *,
    hidden_size: int,
    positions_need_fields: bool,
) -> Item:
    """The item that `embeddings`, [count, hidden size], stand for.

    `hidden_size` is the width of the text model's embeddings. Raises `RequestError` for another shape, and where positions are
    made from fields that only the processor gives (`positions_need_fields`: M-RoPE models take a picture's grid).
    """
    if positions_need_fields:
        raise RequestError(
            processor_class,
            found=f"pre-computed {profile.modality} embeddings",
            expected=f"{profile.modality} items",
            do="This model's positions follow the size of an item, which embeddings don't tell; send the items themselves.",
        )
    if embeddings.ndim != 2 or embeddings.shape[0] == 0 or embeddings.shape[1] != hidden_size:
        raise RequestError(
            processor_class,
            found=f"{profile.modality} embeddings of shape {tuple(embeddings.shape)}",
            expected=f"[count, hidden size] = [at least 1, {hidden_size}] for each item",
            do="Send one such tensor an item.",
        )
    head, tail = profile.frame
    count = embeddings.shape[0]
    return Item(
        placeholder=profile.placeholder,
        expansion=Expansion(
            ids=(*head, *[min(profile.embed_ids)] * count, *tail),
            is_embed=(*[False] * len(head), *[True] * count, *[False] * len(tail)),
        ),
        fields={EMBEDS: embeddings},
    )
