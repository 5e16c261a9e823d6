"""The offsets strategy reads what transformers reports, and nothing where it reports nothing."""

import pytest

from hf_backend.placeholders.base import Replacement
from hf_backend.placeholders.offsets import Offsets


class Letters:
    """A tokenizer whose tokens are characters."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return [0] * add_special_tokens + [ord(letter) for letter in text]


def test_replacements_come_in_prompt_order_and_by_modality() -> None:
    entries = [
        {"type": "image", "text": "I", "replacement": "ab"},
        {"type": "audio", "text": "A", "replacement": "x"},
        {"type": "image", "text": "I", "replacement": "c"},
    ]
    read = Offsets().read({"text_replacement_offsets": [entries]}, "image", Letters())
    assert read == [Replacement("I", (97, 98)), Replacement("I", (99,))]


@pytest.mark.parametrize("output", [{}, {"text_replacement_offsets": None}, {"text_replacement_offsets": []}])
def test_a_processor_that_reports_nothing(output: dict[str, object]) -> None:
    assert Offsets().read(output, "image", Letters()) == []
