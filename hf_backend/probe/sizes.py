"""The largest item of a modality by token count, and the smallest picture that reaches it.

Takes a function that counts; gives a size. Counting is measured (`alone`); the processor's own counter is used only as a
faster way to the same number, after it was seen to agree. Not for building dummy inputs (`hf_backend.processing.dummy`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Size = tuple[int, int]
"""Width and height in pixels."""

FINE_SIDES = tuple(round(64 * 2 ** (step / 4)) for step in range(25))
"""64 to 4096 in quarter octaves, for counters that cost nothing."""
COARSE_SIDES = tuple(64 * 2**step for step in range(6))
"""64 to 2048 in octaves, for counting by running the processor."""
COARSE_ASPECTS: tuple[Size, ...] = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1))
MAX_ASPECT = 8
"""Beyond this no picture is tried: Qwen2-VL refuses 200:1, and tiling grids end long before."""


@dataclass(frozen=True, slots=True)
class LargestItem:
    """A size and what an item of that size costs."""

    size: Size
    num_tokens: int
    """Length of its expansion."""
    num_embeds: int


Count = Callable[[Size], tuple[int, int] | None]
"""Expansion length and embedding count of a picture of that size; None if the processor refuses it."""


def largest(sizes: Iterable[Size], count: Count, limit: int) -> LargestItem | None:
    """The size with the most embeddings whose expansion is at most `limit` tokens long; the smallest area among equals.

    If every size is longer than the limit, the shortest expansion: the engine then refuses such items by length.
    """
    best: LargestItem | None = None
    shortest: LargestItem | None = None
    for size in sorted(sizes, key=lambda size: size[0] * size[1]):
        counted = count(size)
        if counted is None:
            continue
        item = LargestItem(size, *counted)
        if shortest is None or item.num_tokens < shortest.num_tokens:
            shortest = item
        if item.num_tokens <= limit and (best is None or item.num_embeds > best.num_embeds):
            best = item
    return best or shortest


def largest_measured(count: Count, limit: int) -> LargestItem | None:
    """Search by running the processor: octaves of sides, a few aspects, until two octaves bring nothing more."""
    best: LargestItem | None = None
    octaves_without_growth = 0
    for side in COARSE_SIDES:
        sizes = [(side * width, side * height) for width, height in COARSE_ASPECTS]
        found = largest(sizes, count, limit)
        if found is None:
            continue
        if best is None or (best.num_embeds < found.num_embeds and found.num_tokens <= limit):
            best, octaves_without_growth = found, 0
        else:
            octaves_without_growth += 1
        if found.num_tokens > limit or octaves_without_growth == 2:
            break
    return best


def fine_sizes() -> list[Size]:
    """Every pair of `FINE_SIDES` of a sensible aspect."""
    return [(w, h) for w in FINE_SIDES for h in FINE_SIDES if max(w, h) <= MAX_ASPECT * min(w, h)]


def helper_count(processor: Any, hf_kwargs: Mapping[str, object]) -> Callable[[Size], int | None]:
    """The processor's own counter of image embeddings, or one that always says None where it has none.

    `_get_num_multimodal_tokens` is optional in transformers, and wrong in some processors; see `agrees`.
    """
    helper = getattr(processor, "_get_num_multimodal_tokens", None)

    def count(size: Size) -> int | None:
        if helper is None:
            return None
        width, height = size
        try:
            counted = helper(image_sizes=[[height, width]], **hf_kwargs)["num_image_tokens"][0]
        except Exception:  # noqa: BLE001 - whatever an optional helper raises, it can't be used
            return None
        return int(counted)

    return count


def agrees(helper: Callable[[Size], int | None], count: Count, sizes: Iterable[Size]) -> bool:
    """Whether the helper's number equals the measured embedding count on every one of `sizes`."""
    for size in sizes:
        counted = count(size)
        if counted is None or helper(size) != counted[1]:
            return False
    return True
