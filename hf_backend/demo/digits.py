"""Pictures to read: scikit-learn's bundled handwritten digits, split once and for all.

Takes nothing from outside the installed packages; gives RGB pictures of several sizes, sequences of them, the truth in
words, and chat messages as plain dicts. Not for training data in bulk (`augment`) nor for reading (`reference`, `server`).
"""

import base64
import functools
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
QUESTION = "read the digits"
HELD_OUT = 360
SPLIT_SEED = 0
CANVASES = ((32, 32), (32, 48), (48, 48))
"""Height and width of a picture: picture number k has canvas k % 3. Of several sizes on purpose, so that the pictures of
one prompt have 4, 6 or 9 embeddings each and a backend that mixes them up is caught."""


@dataclass(frozen=True)
class Picture:
    """One handwritten digit: its number in scikit-learn's set (0 to 1796), the digit, and an RGB picture."""

    number: int
    digit: int
    image: Image.Image


@dataclass(frozen=True)
class Reading:
    """One task: the pictures of one prompt, in order."""

    pictures: tuple[Picture, ...]

    @property
    def truth(self) -> str:
        """The right answer: the digits' words with one space between them."""
        return words([picture.digit for picture in self.pictures])

    @property
    def name(self) -> str:
        """The pictures' numbers, such as `17` or `17+3+940`."""
        return "+".join(str(picture.number) for picture in self.pictures)

    @property
    def images(self) -> list[Image.Image]:
        """The RGB pictures in prompt order."""
        return [picture.image for picture in self.pictures]


@dataclass(frozen=True)
class Split:
    """Numbers of the pictures to train on (1,437) and of those held out (360); disjoint, in rising order."""

    train: tuple[int, ...]
    held_out: tuple[int, ...]


def words(digits: Sequence[int]) -> str:
    """`(3, 7)` in words: `three seven`."""
    return " ".join(WORDS[digit] for digit in digits)


@functools.cache
def bundled() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All pictures as brightness [1797, 8, 8] (0 to 255) and their digits [1797]."""
    from sklearn.datasets import load_digits

    data = load_digits()
    brightness = np.rint(data.images * (255 / 16)).astype(np.uint8)
    return brightness, data.target.astype(np.int64)


@functools.cache
def split() -> Split:
    """The one split of the project: stratified by digit, the same on every machine."""
    from sklearn.model_selection import train_test_split

    _, digits = bundled()
    train, held_out = train_test_split(
        np.arange(len(digits)), test_size=HELD_OUT, stratify=digits, random_state=SPLIT_SEED
    )
    return Split(tuple(sorted(train.tolist())), tuple(sorted(held_out.tolist())))


def enlarge(brightness: NDArray[np.uint8], side: int) -> Image.Image:
    """One digit [8, 8] as a square grey picture of `side` pixels."""
    return Image.fromarray(brightness).resize((side, side), Image.Resampling.BILINEAR)


def picture(number: int) -> Picture:
    """Picture `number` of scikit-learn's set: white on black, centred on its canvas."""
    brightness, digits = bundled()
    height, width = CANVASES[number % len(CANVASES)]
    side = min(height, width)
    canvas = Image.new("L", (width, height))
    canvas.paste(enlarge(brightness[number], side), ((width - side) // 2, (height - side) // 2))
    return Picture(number, int(digits[number]), canvas.convert("RGB"))


def singles(count: int | None = None, seed: int = 1) -> list[Reading]:
    """`count` held-out pictures one by one, each at most once (all 360 if None), in an order drawn by `seed`."""
    numbers = list(split().held_out)
    random.Random(seed).shuffle(numbers)
    if count is not None and not 0 <= count <= len(numbers):
        raise ValueError(
            f"singles: found count {count}; expected 0 to {len(numbers)}, the pictures held out. Ask for fewer."
        )
    return [Reading((picture(number),)) for number in numbers[:count]]


def sequences(count: int, length: int = 3, seed: int = 2) -> list[Reading]:
    """`count` prompts of `length` (1 to 3) held-out pictures, drawn by `seed`; a picture may come back, also within one."""
    if not 1 <= length <= 3:
        raise ValueError(f"sequences: found length {length}; expected 1 to 3, what the model was trained on.")
    draw = random.Random(seed)
    return [Reading(tuple(picture(draw.choice(split().held_out)) for _ in range(length))) for _ in range(max(count, 0))]


def data_url(image: Image.Image) -> str:
    """The picture as a `data:` URL holding a base64 PNG: nothing is lost and nothing is fetched."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def openai_messages(images: Sequence[Image.Image], question: str = QUESTION) -> list[dict[str, Any]]:
    """A chat of one user turn, pictures first, as the OpenAI API and vLLM's `LLM.chat` take it."""
    content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in images]
    return [{"role": "user", "content": [*content, {"type": "text", "text": question}]}]


def hf_messages(images: Sequence[Image.Image], question: str = QUESTION) -> list[dict[str, Any]]:
    """The same chat as `openai_messages`, as `apply_chat_template` of a Hugging Face processor takes it."""
    content: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images]
    return [{"role": "user", "content": [*content, {"type": "text", "text": question}]}]
