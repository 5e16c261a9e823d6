"""What a joint call of an HF processor saves: four new pictures in one call beside four calls.

    python -m compat.bench.calls [FAMILY ...]

Takes families of the zoo; prints a Markdown table. Every processor runs twice: with the tiny sizes of the zoo and with the
defaults of its image processor's class. Families whose items have calls of their own in any case are left out.
"""

import contextlib
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from compat.processors import processor_of
from compat.zoo.registry import families
from hf_backend.probe.alone import Alone
from hf_backend.probe.samples import picture
from hf_backend.probe.together import together
from hf_backend.records import Item

COUNT, REPEATS = 4, 7
SIZES = ((64, 64), (640, 480), (1280, 960))


def best_of(run: Callable[[], object]) -> float:
    """Milliseconds of the fastest of several runs, after one that isn't counted."""
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times[1:]) * 1e3


def _each_alone(alone: Alone, pictures: list[Any]) -> list[Item]:
    return [alone(each, {}) for each in pictures]


def measure(family: str) -> None:
    """Print one line a size of picture and of processor."""
    info = processor_of(family, cached=False).processor.info
    profile = info.profile.modalities["image"]
    if profile.joint is None:
        return
    processor, alone = info.get_hf_processor(), info.alone("image")
    for kind in ("tiny", "default"):
        if kind == "default":
            processor.image_processor = type(processor.image_processor)()
        for width, height in SIZES:
            pictures: list[Any] = [picture(width, height + 32 * (seed % 2), seed) for seed in range(COUNT)]
            one_by_one = best_of(functools.partial(_each_alone, alone, pictures))
            # With other sizes the split isn't used, but the call is the same.
            joint = best_of(functools.partial(together, alone, pictures, profile.joint, profile.layouts))
            print(
                f"| {family} | {kind} | {width}x{height} | {one_by_one:.1f} | {joint:.1f} | {one_by_one / joint:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    print(f"| family | processor | pictures | {COUNT} calls, ms | one call, ms | ratio |\n|---|---|---|---|---|---|")
    for name in sys.argv[1:] or families("image"):
        with contextlib.suppress(ValueError):  # not served at all
            measure(name)
