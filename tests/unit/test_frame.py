"""Embeddings that a request brings along stand within what surrounds a modality's own, without what tells of one item."""

from collections.abc import Sequence
from typing import Any

import pytest

from hf_backend.probe.frame import frame

pytestmark = pytest.mark.processing

START, EMBED, END = 90, 91, 92
WORDS = {1: "\n\n", 2: "00", 3: ":", 4: " seconds"}


class Tokenizer:
    """Three special tokens and a few words."""

    all_special_ids: Sequence[int] = (START, EMBED, END)

    def get_added_vocab(self) -> dict[str, int]:
        return {}

    def decode(self, ids: list[int]) -> str:
        return "".join(WORDS[token] for token in ids)


@pytest.mark.parametrize(
    ("expansions", "expected"),
    [
        ([[START, EMBED, END], [START, EMBED, EMBED, END]], ((START,), (END,))),
        ([[1, START, EMBED, END, 1]] * 2, ((1, START), (END, 1))),
        ([[2, 3, 2, START, EMBED, END, 2, START, EMBED, END]] * 2, ((START,), (END,))),
        ([[START, EMBED, END, 4, END]] * 2, ((START,), (END,))),
        ([[START, EMBED], [1, EMBED]], ((), ())),
        ([[START]], ((), ())),
    ],
    ids=["start and end", "blank lines stay", "timestamps go", "text behind goes", "no agreement", "no embedding"],
)
def test_frame(expansions: Any, expected: Any) -> None:
    assert frame(expansions, frozenset({EMBED}), Tokenizer()) == expected
