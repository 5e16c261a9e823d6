"""Requests in which a video and its sound are woven into one another (`use_audio_in_video`).

Takes such a request apart into one of plain items, so that each is processed and cached as it is alone; puts what comes of it
together again with the ids that the processor gives for each pair. vLLM lets the two items' ranges of the prompt be the same one,
with each its own embeddings in it. Not for how a pair is woven (`hf_backend.probe.woven`).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from hf_backend.errors import RequestError
from hf_backend.modalities import WEAVING
from hf_backend.placeholders.splice import Target, find_targets
from hf_backend.probe.woven import Weave
from hf_backend.processing.info import ProcessingInfo
from hf_backend.records import ProcessorProfile
from hf_backend.upstream import MultiModalInput, PlaceholderRange, ProcessorInputs

Pair = tuple[int, int]
"""Numbers of the two items, each among its modality's."""


def asked_option(info: ProcessingInfo, inputs: ProcessorInputs) -> str | None:
    """The option with which the request, or the start, asks for its items to be woven; None where there is nothing to weave."""
    given = info.ctx.get_merged_mm_kwargs(inputs.hf_processor_mm_kwargs)
    counts = inputs.mm_data_items.get_all_counts()
    return next((option for option, (first, _) in WEAVING.items() if given.get(option) and counts.get(first, 0)), None)


def without(inputs: ProcessorInputs, option: str) -> ProcessorInputs:
    """The request as if `option` had not been given: items are what they are without it, also to the cache."""
    kwargs = {name: value for name, value in inputs.hf_processor_mm_kwargs.items() if name != option}
    return dataclasses.replace(inputs, hf_processor_mm_kwargs=kwargs)


def unwoven(prompt: Sequence[int], weave: Weave, profile: ProcessorProfile, counts: Mapping[str, int]) -> list[int]:
    """`prompt` with two placeholders that touch, one of each modality, for every pair.

    vLLM's chat puts a placeholder behind each video for the sound that it took from it. Where there are as many of these as
    clips, they go with the markers around them: a processor counts them as clips of their own. Raises `RequestError` where pairs
    and items don't fit.
    """
    first, second = weave.modalities
    targets = {first: weave.target_ids, second: profile.modalities[second].target_ids}
    found = find_targets(prompt, targets)
    pairs = [target for target in found if target.modality == first]
    alone = [target for target in found if target.modality == second]
    number = counts.get(first, 0)
    if len(pairs) != number or counts.get(second, 0) < number:
        raise RequestError(
            profile.processor_class,
            found=f"{number} {first} item(s), {counts.get(second, 0)} {second} item(s) and {len(pairs)} times {weave.text!r} in the"
            f" prompt, with {weave.option}",
            expected=f"that once for each {first} item, and {second} for each",
            do=f"Send {second} with every {first}, or leave out {weave.option}.",
        )
    # The sound that vLLM's chat took from a video is the next one behind it.
    spare = [next((one for one in alone if one.start >= pair.end), None) for pair in pairs]
    spare = spare if len(alone) == counts.get(second, 0) else []
    both = [*profile.modalities[first].target_ids, *profile.modalities[second].target_ids]
    ids: list[int] = []
    done = 0
    for target in found:
        if target.modality == first:
            ids += [*prompt[done : target.start], *both]
            done = target.end
        elif target in spare:
            start, end = _with_markers(prompt, target, weave.markers)
            ids += prompt[done:start]
            done = end
    return [*ids, *prompt[done:]]


def _with_markers(
    prompt: Sequence[int], target: Target, markers: tuple[Sequence[int], Sequence[int]]
) -> tuple[int, int]:
    """Where `target` with the markers around it starts and ends; without them where they aren't both there."""
    head, tail = map(list, markers)
    start, end = target.start - len(head), target.end + len(tail)
    if start >= 0 and list(prompt[start : target.start]) == head and list(prompt[target.end : end]) == tail:
        return start, end
    return target.start, target.end


def woven(
    result: MultiModalInput, weave: Weave, profile: ProcessorProfile, ids_of: Callable[[Pair], Sequence[int]]
) -> MultiModalInput:
    """`result`, of a prompt from `unwoven`, with the ids that `ids_of` gives in the place of each pair's.

    Raises `RequestError` where these have another number of places for an item's embeddings than the item has alone.
    """
    first, second = weave.modalities
    prompt: Sequence[int] = result["prompt_token_ids"]
    placed: Mapping[str, Sequence[Any]] = result["mm_placeholders"]
    ids: list[int] = []
    done = 0
    ranges: dict[str, list[Any]] = {name: list(each) for name, each in placed.items()}
    behind = {each.offset: number for number, each in enumerate(placed[second])}
    order = sorted(
        (each.offset, name, number) for name, each_of in placed.items() for number, each in enumerate(each_of)
    )
    taken: set[int] = set()
    for offset, name, number in order:
        here = placed[name][number]
        if name == second and number in taken:
            continue
        ids += prompt[done:offset]
        start = len(ids)
        if name != first:
            ids += prompt[offset : offset + here.length]
            ranges[name][number] = dataclasses.replace(here, offset=start)
            done = offset + here.length
            continue
        other = behind[offset + here.length]
        taken.add(other)
        both = list(ids_of((number, other)))
        for modality, index in ((first, number), (second, other)):
            alone = placed[modality][index]
            is_embed = torch.isin(torch.tensor(both), torch.tensor(sorted(profile.modalities[modality].embed_ids)))
            expected = alone.get_num_embeds()
            if int(is_embed.sum()) != expected:
                raise RequestError(
                    profile.processor_class,
                    found=f"{int(is_embed.sum())} places for {modality} item {index} with {weave.option}",
                    expected=f"{expected}, as for the item alone",
                    do=f"Leave {weave.option} out of mm_processor_kwargs.",
                )
            ranges[modality][index] = PlaceholderRange(offset=start, length=len(both), is_embed=is_embed)
        ids += both
        done = offset + here.length + placed[second][other].length
    return {**result, "prompt_token_ids": [*ids, *prompt[done:]], "mm_placeholders": ranges}
