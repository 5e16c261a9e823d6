"""The small items a probe shows to a processor, and the blank ones that sizes are measured with.

Deterministic noise: a processor that mixes up two items, or drops one, is then seen in the contents.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """An RGB picture of `width` x `height` pixels of noise."""
    pixels = np.random.default_rng((seed, width, height)).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def video(width: int, height: int, frames: int, seed: int = 0) -> NDArray[np.uint8]:
    """A video of noise, uint8 [frames, height, width, 3]."""
    shape = (frames, height, width, 3)
    return np.random.default_rng((seed, *shape)).integers(0, 256, shape, dtype=np.uint8)


def clip(samples: int, seed: int = 0) -> NDArray[np.float32]:
    """A mono clip of quiet noise, float32 [samples]."""
    return np.random.default_rng((seed, samples)).normal(0, 0.1, samples).astype(np.float32)


def metadata(frames: int, fps: float = 2.0) -> dict[str, Any]:
    """Metadata of a video whose frames were all kept."""
    return {
        "fps": fps,
        "duration": frames / fps,
        "total_num_frames": frames,
        "frames_indices": list(range(frames)),
        "video_backend": "opencv",
    }


SMALL, LARGE = (112, 84), (224, 392)
"""Width and height of the two probe pictures: unequal in both, of different shape, and far enough apart that processors
which resize by area (Qwen2-VL) or tile (InternVL) give them different amounts of data."""


def samples(modality: str, sampling_rate: float) -> tuple[object, object]:
    """Two items of different sizes. `sampling_rate` in Hz is the audio processor's."""
    if modality == "image":
        return picture(*SMALL, seed=1), picture(*LARGE, seed=2)
    if modality == "video":
        # Even numbers of frames, and more than one temporal patch of 2 or 4 in each.
        return (video(*SMALL, frames=4, seed=3), metadata(4)), (video(*LARGE, frames=8, seed=4), metadata(8))
    return clip(int(0.6 * sampling_rate), seed=5), clip(int(1.7 * sampling_rate), seed=6)


def clips_of_many_lengths(sampling_rate: float) -> list[NDArray[np.float32]]:
    """Sixteen clips of 0.24 to 2.2 s. Towers halve the number of frames, of 10 ms each, up to four times; their lengths are 13
    frames apart, so that they leave every remainder of sixteen, and not one number of samples behind the last frame."""
    hop = sampling_rate / 100
    return [clip(int((24 + 13 * number) * hop) + 7 * number, seed=7 + number) for number in range(16)]


def blank(modality: str, size: Sequence[int]) -> object:
    """An item without contents: a white picture (width, height), a white video (width, height, frames) or silence
    (samples)."""
    if modality == "image":
        width, height = size
        return Image.new("RGB", (width, height), color=(255, 255, 255))
    if modality == "video":
        width, height, frames = size
        return np.full((frames, height, width, 3), 255, dtype=np.uint8), metadata(frames)
    (length,) = size
    return np.zeros(length, dtype=np.float32)
