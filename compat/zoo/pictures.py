"""Pictures made from numbers, the same in every process.

Takes a size and a seed; gives a PIL picture. Not for pictures that mean anything.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


def picture(width: int, height: int, seed: int) -> "Image":
    """An RGB picture, `width` x `height` pixels.

    Large coloured patches under some noise: patches survive a processor's resizing, so two seeds stay different; noise
    makes every tile of one picture different.
    """
    import numpy as np
    from PIL import Image

    random = np.random.default_rng([seed, width, height])
    patches = Image.fromarray(random.integers(0, 256, (3, 3, 3), dtype=np.uint8), "RGB")
    base = np.asarray(patches.resize((width, height), Image.Resampling.BILINEAR), dtype=np.int16)
    noise = random.integers(-40, 41, base.shape, dtype=np.int16)
    return Image.fromarray(np.clip(base + noise, 0, 255).astype(np.uint8))
