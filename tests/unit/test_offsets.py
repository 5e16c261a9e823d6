"""The offsets strategy reads what transformers reports, and nothing where it reports nothing."""

import pytest

from hf_backend.placeholders.base import Replacement
from hf_backend.placeholders.offsets import Offsets

pytestmark = pytest.mark.processing


class Letters:
    """A tokenizer whose tokens are characters."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return [0] * add_special_tokens + [ord(letter) for letter in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(map(chr, ids))


ENTRIES = [
    {"type": "image", "text": "I", "replacement": "ab"},
    {"type": "audio", "text": "A", "replacement": "x"},
]


def read(output: dict[str, object], modality: str) -> Replacement | None:
    return Offsets().read(output, [], "I", modality, Letters())


def test_the_replacement_of_the_modality_asked_for() -> None:
    output = {"text_replacement_offsets": [ENTRIES]}
    assert read(output, "image") == Replacement("I", (97, 98))
    assert read(output, "audio") == Replacement("A", (120,))


@pytest.mark.parametrize(
    "output",
    [
        {},
        {"text_replacement_offsets": None},
        {"text_replacement_offsets": []},
        {"text_replacement_offsets": [[]]},
        {"text_replacement_offsets": [[ENTRIES[0], ENTRIES[0]]]},
    ],
    ids=["no key", "none", "no prompt", "nothing replaced", "replaced twice"],
)
def test_a_processor_that_reports_nothing_of_use(output: dict[str, object]) -> None:
    assert read(output, "image") is None
