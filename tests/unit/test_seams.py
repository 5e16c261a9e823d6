"""Text at an expansion's edges is tokenized together with the text it touches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.placeholders.seams import core_span, splice_merging
from hf_backend.placeholders.splice import find_targets, splice

pytestmark = pytest.mark.processing

PLACEHOLDER, START, SOFT, END = 900, 901, 902, 903
SPECIAL = {PLACEHOLDER: "I", START: "<", SOFT: "*", END: ">"}


class Newlines:
    """Tokens: letters, and newlines in runs of up to three, as byte-level BPE makes of them."""

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        ids: list[int] = []
        position = 0
        while position < len(text):
            length = 1
            while length < 3 and text[position : position + length + 1] == "\n" * (length + 1):
                length += 1
            ids.append(1000 + length if text[position] == "\n" else ord(text[position]))
            position += length
        return ids

    def decode(self, ids: list[int]) -> str:
        return "".join("\n" * (token - 1000) if token > 1000 else chr(token) for token in ids)


TOKENIZER = Newlines()


def is_text(token: int) -> bool:
    return token not in SPECIAL


texts = st.text(st.sampled_from("ab\n"), max_size=4)


@given(st.lists(texts, min_size=2, max_size=5), texts, texts, st.integers(1, 3))
def test_ids_are_those_of_the_whole_text(parts: list[str], before: str, after: str, soft: int) -> None:
    """The reference tokenizes the expanded text at once, special tokens parting it, as transformers does."""
    expansion = [*TOKENIZER.encode(before), START, *[SOFT] * soft, END, *TOKENIZER.encode(after)]
    prompt: list[int] = []
    for number, part in enumerate(parts):
        prompt += ([PLACEHOLDER] if number else []) + TOKENIZER.encode(part)
    found = find_targets(prompt, {"image": [PLACEHOLDER]})

    ids, placed = splice_merging(prompt, found, {"image": [expansion] * len(found)}, TOKENIZER, is_text)

    expected, starts = [], []
    for number, part in enumerate(parts):
        tail = before if number < len(parts) - 1 else ""
        head = after if number else ""
        expected += TOKENIZER.encode(head + part + tail)
        if number < len(parts) - 1:
            starts.append(len(expected))
            expected += [START, *[SOFT] * soft, END]
    assert ids == expected
    assert [start for _, start in placed] == starts


def test_without_text_at_the_edges_nothing_is_tokenized_anew() -> None:
    """Token ids that the tokenizer itself would never make stay as they were sent (C3)."""
    prompt = [1001, 1001, PLACEHOLDER, 1001, 1001]
    found = find_targets(prompt, {"image": [PLACEHOLDER]})
    expansions = {"image": [[START, SOFT, 1001, SOFT, END]]}
    merged = splice_merging(prompt, found, expansions, TOKENIZER, is_text)
    assert merged == splice(prompt, found, expansions)


def test_the_core_is_what_lies_between_the_text() -> None:
    assert core_span([97, START, 98, END, 97], is_text) == (1, 4)
    assert core_span([97, 98], is_text) == (0, 2)
