"""The legacy strategy cuts the expansion out of the expanded ids, and sees where it can't."""

import pytest

from hf_backend.placeholders.base import Replacement
from hf_backend.placeholders.legacy import Legacy

pytestmark = pytest.mark.processing


class Letters:
    """A tokenizer whose tokens are characters, with a token before every text and one after it."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        letters = [ord(letter) for letter in text]
        return [1, *letters, 2] if add_special_tokens else letters

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


@pytest.mark.parametrize(
    ("ids", "expansion"),
    [([1, 9, 9, 2], (9, 9)), ([9, 9], (9, 9)), ([1, 73, 2], (73,)), ([1, 2], ())],
    ids=["with special tokens", "without", "not expanded", "removed"],
)
def test_what_stands_between_the_known_ids(ids: list[int], expansion: tuple[int, ...]) -> None:
    assert Legacy().read({}, ids, "I", "image", Letters()) == Replacement("I", expansion)


def test_a_text_of_which_nothing_is_known_is_taken_whole() -> None:
    """The unexpanded prompt is tried with and without special tokens; without, everything is the expansion, and the
    oracle finds out."""
    assert Legacy().read({}, [9, 1, 5], "I", "image", Letters()) == Replacement("I", (9, 1, 5))
