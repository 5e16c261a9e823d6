"""The largest item of a modality by token count, and the smallest one that reaches it.

Takes a function that counts; gives a size. Counting is measured (`alone`); the processor's own counter is used only as a
faster way to the same number, after it was seen to agree. Not for building dummy inputs (`hf_backend.processing.dummy`).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Size = tuple[int, ...]
"""Width and height in pixels of a picture, also the number of frames of a video, or the samples of a clip."""

FINE_SIDES = tuple(round(64 * 2 ** (step / 4)) for step in range(25))
"""64 to 4096 in quarter octaves, for counters that cost nothing."""
COARSE_SIDES = tuple(64 * 2**step for step in range(6))
"""64 to 2048 in octaves, for counting by running the processor."""
COARSE_ASPECTS: tuple[Size, ...] = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1))
MAX_ASPECT = 8
"""Beyond this no picture is tried: Qwen2-VL refuses 200:1, and tiling grids end long before."""
VIDEO_FRAMES = (2, 4, 8, 16, 32)
"""vLLM's loader takes 32 frames of a video unless told otherwise."""
CLIP_SECONDS = (0.5, 1, 2, 4, 8, 16, 30, 60, 120, 300)


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
    for size in sorted(sizes, key=math.prod):
        counted = count(size)
        if counted is None:
            continue
        item = LargestItem(size, *counted)
        if shortest is None or item.num_tokens < shortest.num_tokens:
            shortest = item
        if item.num_tokens <= limit and (best is None or item.num_embeds > best.num_embeds):
            best = item
    return best or shortest


def climb(steps: Iterable[Sequence[Size]], count: Count, limit: int) -> LargestItem | None:
    """Search by running the processor: steps of ever larger sizes, until two of them bring nothing more or one is too long.

    What is never processed this way is a picture of 10,000 x 10,000 pixels.
    """
    best: LargestItem | None = None
    steps_without_growth = 0
    for sizes in steps:
        found = largest(sizes, count, limit)
        if found is None:
            continue
        if best is None or (best.num_embeds < found.num_embeds and found.num_tokens <= limit):
            best, steps_without_growth = found, 0
        else:
            steps_without_growth += 1
        if found.num_tokens > limit or steps_without_growth == 2:
            break
    return best


def picture_steps() -> list[list[Size]]:
    """Octaves of sides, a few aspects each."""
    return [[(side * width, side * height) for width, height in COARSE_ASPECTS] for side in COARSE_SIDES]


def video_steps() -> list[list[Size]]:
    """Longer and larger at once: a processor may bound the frames, each frame's size or their product."""
    sides = (64, 128, 256, 512, 1024)
    return [[(side, side, frames) for frames in VIDEO_FRAMES] for side in sides]


def clip_steps(sampling_rate: float) -> list[list[Size]]:
    """Up to five minutes, or the extractor's window where that ends first."""
    return [[(int(seconds * sampling_rate),)] for seconds in CLIP_SECONDS]


def fine_sizes() -> list[Size]:
    """Every pair of `FINE_SIDES` of a sensible aspect."""
    return [(w, h) for w in FINE_SIDES for h in FINE_SIDES if max(w, h) <= MAX_ASPECT * min(w, h)]


def of_every_aspect(width: int, height: int) -> list[Size]:
    """Pictures of about the area of `width` x `height`, of every aspect of small whole numbers up to 1:3.

    Where a processor keeps the aspect and bounds the number of patches (Gemma 4: 70), only some aspects reach the bound: 7:10 does,
    a square has 64.
    """
    area = width * height
    pairs = [(p, q) for p in range(1, 11) for q in range(1, 11) if math.gcd(p, q) == 1 and max(p, q) <= 3 * min(p, q)]
    return [(round(p * unit), round(q * unit)) for p, q in pairs for unit in [math.sqrt(area / (p * q))]]


def helper_count(processor: Any) -> Callable[[Size], int | None]:
    """The processor's own counter of image embeddings, or one that always says None where it has none.

    `_get_num_multimodal_tokens` is optional in transformers, and wrong in some processors; see `agrees`. It is never given
    options: most processors' write them into the defaults of their class, for every later call in the process (Idefics3's
    `do_image_splitting`). Start-up options are in the processor itself; where the helper doesn't look there, it doesn't agree.
    """
    helper = getattr(processor, "_get_num_multimodal_tokens", None)

    def count(size: Size) -> int | None:
        if helper is None:
            return None
        width, height = size[0], size[1]
        try:
            counted = helper(image_sizes=[[height, width]])["num_image_tokens"][0]
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
