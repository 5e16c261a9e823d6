"""M-RoPE positions from the HF model's own `get_rope_index`.

Takes a prompt's ids and its items as vLLM keeps them; gives positions and the delta for decoding. Arguments are passed by
the method's signature, which differs between models and transformers releases.
"""

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import torch

from hf_backend import modalities
from hf_backend.encoding.buckets import join
from hf_backend.modalities import WEAVING
from hf_backend.records import FieldLayout, wire_name

if TYPE_CHECKING:
    from hf_backend.upstream import MultiModalFeatureSpec


RENAMED = {"second_per_grids": "video_second_per_grid"}
"""Argument of `get_rope_index` to the field it is called among what the processor returns, where the model's own `generate`
passes the one as the other (Qwen2.5-Omni, Qwen3-Omni)."""

CLIP_LENGTHS, CLIP_MASK = "audio_feature_lengths", "feature_attention_mask"
"""A clip's frames, as a number or as a mask, as the Omnis' `generate` looks for them."""


def rope_positions(
    get_rope_index: Callable[..., tuple[torch.Tensor, torch.Tensor]],
    input_ids: Sequence[int],
    features: Sequence["MultiModalFeatureSpec"],
    layouts: Mapping[str, Mapping[str, FieldLayout]],
) -> tuple[torch.Tensor, int]:
    """Positions [sections, len(input_ids)] and the offset of positions after the prompt.

    `features` are the prompt's items in order of position, `layouts` the measured layouts by modality.
    """
    parameters = inspect.signature(get_rope_index).parameters
    fields = _fields(features, layouts, parameters.keys() | RENAMED.values())
    arguments = {name: value for name, value in fields.items() if name in parameters}
    arguments |= {name: fields[field] for name, field in RENAMED.items() if name in parameters and field in fields}
    if "audio_seqlens" in parameters and (lengths := _clip_lengths(features)) is not None:
        arguments["audio_seqlens"] = lengths
    arguments |= {option: True for option in WEAVING if option in parameters and _overlap(features)}
    ids = torch.tensor(input_ids)
    types, owners = token_types(len(input_ids), features)
    # `get_rope_index` takes a run of one token type for one item. Where two items touch (C6), a text token is put between
    # them, and the one position it uses up is taken back from everything after it.
    touching = (types[1:] == types[:-1]) & (types[1:] != 0) & (owners[1:] != owners[:-1])
    apart = torch.nn.functional.pad(touching.long().cumsum(0), (1, 0))
    places = torch.arange(len(input_ids)) + apart
    length = len(input_ids) + int(touching.sum())
    if "attention_mask" in parameters:
        # The Omnis can't do without, whatever their signature says.
        arguments["attention_mask"] = torch.ones(1, length, dtype=torch.long)
    if "mm_token_type_ids" in parameters:
        # Required since transformers 5.3, also for prompts without items.
        arguments["mm_token_type_ids"] = torch.zeros(1, length, dtype=types.dtype).index_copy(1, places, types[None])
    positions, delta = get_rope_index(
        input_ids=torch.zeros(1, length, dtype=ids.dtype).index_copy(1, places, ids[None]), **arguments
    )
    positions = positions[:, 0, places] - apart
    return positions, _delta(positions, int(delta.flatten()[0]))


def _overlap(features: Sequence["MultiModalFeatureSpec"]) -> bool:
    """Whether two items share a range of the prompt: a video and its sound."""
    places = [feature.mm_position for feature in features]
    return any(one.offset + one.length > other.offset for one, other in itertools.pairwise(places))


def _delta(positions: torch.Tensor, reported: int) -> int:
    """The offset of the tokens after the prompt: `generate` counts on from the last position, which lies below the largest
    one after a long video (Qwen2.5-VL counts its seconds), and `get_rope_index` reports by the largest.

    vLLM knows one offset for all sections; where the prompt ends in an item and they differ, what is reported has to do.
    """
    last = positions[:, -1]
    return int(last[0]) + 1 - positions.shape[1] if bool((last == last[0]).all()) else reported


def _fields(
    features: Sequence["MultiModalFeatureSpec"],
    layouts: Mapping[str, Mapping[str, FieldLayout]],
    wanted: Set[str],
) -> dict[str, Any]:
    """Those of the items' fields that are wanted, joined in prompt order, on the CPU. Others may not join at all: clips' masks
    are of different lengths."""
    joined: dict[str, Any] = {}
    for modality, fields in layouts.items():
        items = [feature.data for feature in features if feature.modality == modality and feature.data is not None]
        # vLLM leaves an item whose embeddings are at hand nothing but what positions may need (`may_make_positions`).
        names = {name for name in wanted & fields.keys() if all(wire_name(modality, name) in item for item in items)}
        if items:
            joined |= join([{name: item[wire_name(modality, name)].data for name in names} for item in items], fields)
    return joined


def _clip_lengths(features: Sequence["MultiModalFeatureSpec"]) -> torch.Tensor | None:
    """Frames of each clip before any pooling, int64 [clips]; None without clips."""
    lengths: list[torch.Tensor] = []
    for feature in features:
        if feature.modality != "audio" or feature.data is None:
            continue
        for name in (CLIP_LENGTHS, CLIP_MASK):
            if (field := feature.data.get(wire_name("audio", name))) is not None:
                value = torch.as_tensor(field.data)
                lengths.append(value.sum() if name == CLIP_MASK else value.reshape(()))
                break
    return torch.stack(lengths).long() if lengths else None


def token_types(length: int, features: Sequence["MultiModalFeatureSpec"]) -> tuple[torch.Tensor, torch.Tensor]:
    """HF's `mm_token_type_ids`, int32 [length]: the modality's number where embeddings go, 0 elsewhere; and of the same
    shape the number of the item each place belongs to, from 1."""
    types = torch.zeros(length, dtype=torch.int32)
    owners = torch.zeros(length, dtype=torch.int32)
    for number, feature in enumerate(features, start=1):
        position = feature.mm_position
        span = slice(position.offset, position.offset + position.length)
        is_embed = slice(None) if position.is_embed is None else position.is_embed
        types[span][is_embed] = modalities.get(feature.modality).token_type_id
        owners[span][is_embed] = number
    return types, owners
