"""Rows of items whose places in a prompt are woven into one another.

Takes rows in the order in which vLLM has the items, and which ids of a step are of which modality; gives the rows in the order of
their places. Not for items one behind the other, for which the two orders are one.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from hf_backend.modalities import WEAVING
from hf_backend.records import ProcessorProfile


def woven_ids(model: Any, profile: ProcessorProfile, device: torch.device) -> dict[str, torch.Tensor] | None:
    """The ids that embeddings replace by modality, int64 [ids], where the HF model knows positions of items woven into one another;
    else None."""
    get_rope_index = getattr(model, "get_rope_index", None)
    if get_rope_index is None or WEAVING.keys().isdisjoint(inspect.signature(get_rope_index).parameters):
        return None
    return {name: torch.tensor(sorted(one.embed_ids), device=device) for name, one in profile.modalities.items()}


def in_order_of_places(
    items: Sequence[torch.Tensor],
    rows: torch.Tensor,
    ids: torch.Tensor,
    is_multimodal: torch.Tensor,
    embed_ids: Mapping[str, torch.Tensor],
) -> torch.Tensor:
    """`rows`, [embeddings, width], all of `items` one behind the other, so that the k-th is for the k-th place of `is_multimodal`,
    bool [tokens].

    vLLM's runner says of each of `items` which `modality` it is of; one modality's items are in order. `embed_ids` has the ids,
    int64 [ids], that each modality's embeddings replace. Without a synchronisation of the accelerator.
    """
    named = [getattr(item, "modality", None) for item in items]
    kinds = [kind for kind in embed_ids if kind in named]
    if len(kinds) < 2:
        return rows
    # Places first, in order.
    places = torch.argsort((~is_multimodal).to(ids.device, torch.int8), stable=True)[: len(rows)]
    there = ids[places]
    parts = rows.split([len(item) for item in items])
    ordered = rows.clone()
    for kind in kinds:
        own = torch.cat([part for part, name in zip(parts, named, strict=True) if name == kind])
        ordered.masked_scatter_(torch.isin(there, embed_ids[kind])[:, None], own)
    return ordered
