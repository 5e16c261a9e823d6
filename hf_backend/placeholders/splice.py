"""Putting expansions into a prompt of token ids.

Pure functions over lists of ints. The k-th occurrence of a modality's placeholder belongs to its k-th item (C4, C6);
whether the numbers fit is the caller's check, made before (`hf_backend.processing.refusals`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """One placeholder found in a prompt: `prompt[start:end]` stands for item `index` of `modality`."""

    modality: str
    index: int
    start: int
    end: int


def occurrences(prompt: Sequence[int], target: Sequence[int]) -> list[int]:
    """Starts of `target` in `prompt`, left to right, without overlaps. An empty target is nowhere."""
    if not target:
        return []
    first, length = target[0], len(target)
    starts: list[int] = []
    position = 0
    while True:
        try:
            position = prompt.index(first, position)
        except ValueError:
            return starts
        if length == 1 or list(prompt[position : position + length]) == list(target):
            starts.append(position)
            position += length
        else:
            position += 1


def find_targets(prompt: Sequence[int], targets: Mapping[str, Sequence[int]]) -> list[Target]:
    """All placeholders in `prompt` in order of position.

    `targets` maps a modality to the token ids of its placeholder. Where two would overlap, the one that starts first
    wins, then the longer one (a placeholder may begin with another's token).
    """
    spans = sorted(
        (start, -len(target), modality) for modality, target in targets.items() for start in occurrences(prompt, target)
    )
    found: list[Target] = []
    counts = dict.fromkeys(targets, 0)
    free_from = 0
    for start, negative_length, modality in spans:
        if start < free_from:
            continue
        free_from = start - negative_length
        found.append(Target(modality, counts[modality], start, free_from))
        counts[modality] += 1
    return found


def splice(
    prompt: Sequence[int], found: Sequence[Target], expansions: Mapping[str, Sequence[Sequence[int]]]
) -> tuple[list[int], list[tuple[Target, int]]]:
    """Put `expansions[modality][k]` in the place of the k-th target of each modality.

    Returns the new ids, and each target with the position at which its expansion starts in them. `found` comes from
    `find_targets` on the same prompt; `IndexError` if an item is missing.
    """
    ids: list[int] = []
    placed: list[tuple[Target, int]] = []
    done = 0
    for target in found:
        ids.extend(prompt[done : target.start])
        placed.append((target, len(ids)))
        ids.extend(expansions[target.modality][target.index])
        done = target.end
    ids.extend(prompt[done:])
    return ids, placed
