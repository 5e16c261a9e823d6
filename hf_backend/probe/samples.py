"""The small items a probe shows to a processor.

Deterministic noise: a processor that mixes up two items, or drops one, is then seen in the contents.
"""

from collections.abc import Callable

import numpy as np
from PIL import Image


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """An RGB picture of `width` x `height` pixels of noise."""
    pixels = np.random.default_rng((seed, width, height)).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


SMALL, LARGE = (112, 84), (224, 392)
"""Width and height of the two probe pictures: unequal in both, of different shape, and far enough apart that processors
which resize by area (Qwen2-VL) or tile (InternVL) give them different amounts of data."""

SAMPLES: dict[str, Callable[[], tuple[object, object]]] = {
    "image": lambda: (picture(*SMALL, seed=1), picture(*LARGE, seed=2)),
}
"""Per modality two items of different sizes."""
