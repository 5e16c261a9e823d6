"""Edits that a processor makes to a prompt besides its placeholders are read from its ids and made again (C3)."""

import pytest

from hf_backend.placeholders.edits import apply_edit, dropped, read_edit
from hf_backend.records import PromptEdit

pytestmark = pytest.mark.language


class Newlines:
    """A tokenizer of single characters with one token, 100, for two newlines."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        ids: list[int] = []
        for part in text.split("\n\n"):
            ids += [100, *map(ord, part)] if ids or part != text.split("\n\n")[0] else [*map(ord, part)]
        return ids

    def decode(self, ids: list[int]) -> str:
        return "".join("\n\n" if token == 100 else chr(token) for token in ids)


def test_bos_behind_the_last_item_and_a_newline_at_the_end() -> None:
    """PaliGemma's."""
    assert read_edit([7, 9, 9, 2, 50, 51, 10], [7, 9, 9, 50, 51], 3) == ((2,), (10,))


def test_what_is_no_such_edit() -> None:
    """Differences before the last item's end, or within the text behind it."""
    assert read_edit([8, 9, 2, 50], [7, 9, 50], 2) is None
    assert read_edit([7, 9, 50, 2, 51], [7, 9, 50, 51], 2) is None


def test_the_end_merges_with_what_the_tokenizer_would_merge_it_with() -> None:
    """A prompt that ends in a newline gets the token of two."""
    edit = PromptEdit(drop=(), after_last=(300,), at_end=(10,))
    ids = apply_edit([400, 97, 10], 1, edit, Newlines(), lambda token: token < 200)
    assert ids == [400, 300, 97, 100]
    assert apply_edit([400, 97], 1, edit, Newlines(), lambda token: token < 200) == [400, 300, 97, 10]


def test_the_tokenizers_own_lead_is_dropped_once() -> None:
    """A bos that the tokenizer puts before every text and the processor doesn't."""
    edit = PromptEdit(drop=(2,), after_last=(), at_end=())
    assert dropped([2, 2, 5], edit) == [2, 5]
    assert dropped([5, 2], edit) == [5, 2]
