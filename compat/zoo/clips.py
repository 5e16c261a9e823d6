"""Clips made from numbers, the same in every process.

Takes a length and a seed; gives samples. Not for clips that mean anything.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def clip(seconds: float, seed: int, rate: int = 16_000) -> "npt.NDArray[np.float32]":
    """A mono clip, float32 [seconds * rate] within -1.5 to 1.5; `rate` in Hz.

    Four tones under an envelope, and a little noise: extractors normalise loudness, and noise alone sounds the same to
    them whatever its seed.
    """
    import numpy as np

    random = np.random.default_rng([seed, round(seconds * 1000), rate])
    time = np.arange(int(seconds * rate)) / rate
    loudness, pitch, phase = random.uniform(0.05, 0.3, 4), random.uniform(100, 4000, 4), random.uniform(0, 6, 4)
    tones = (loudness[:, None] * np.sin(2 * np.pi * pitch[:, None] * time + phase[:, None])).sum(axis=0)
    envelope = np.interp(time, np.linspace(0, seconds, 6), random.uniform(0.1, 1, 6))
    return (tones * envelope + random.normal(0, 0.02, time.size)).astype(np.float32)
