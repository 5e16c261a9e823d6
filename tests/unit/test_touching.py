"""What a processor joins where an expansion touches something: Idefics2's form, `F I I F`."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.placeholders.splice import find_targets
from hf_backend.placeholders.touching import splice_touching
from hf_backend.records import TouchRule

pytestmark = pytest.mark.processing

EDGE, PLACE, EMBED, MARKER = range(4)
"""Special tokens; any other id is a character of text."""
WORDS = {EDGE: "[F]", PLACE: "[P]", EMBED: "[I]", MARKER: "<m>"}
IDEFICS2 = TouchRule(shared=True, spaced=True)
EXPANSION = [EDGE, EMBED, EMBED, EDGE]


class Characters:
    """A token a character."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Their numbers."""
        return [ord(one) for one in text]

    def decode(self, ids: Sequence[int]) -> str:
        """And back."""
        return "".join(map(chr, ids))


def is_text(token: int) -> bool:
    return token not in WORDS


def spliced(prompt: Sequence[int], rule: TouchRule = IDEFICS2) -> tuple[list[int], list[tuple[int, list[int]]]]:
    found = find_targets(prompt, {"image": [PLACE]})
    expansions = {"image": [EXPANSION] * len(found)}
    ids, placed = splice_touching(prompt, found, expansions, rule, Characters(), is_text)
    return ids, [(start, tokens) for _, start, tokens in placed]


def as_transformers(prompt: Sequence[int]) -> str:
    """Idefics2's own way, on text."""
    text = (
        "".join(WORDS.get(token, chr(token)) for token in prompt)
        .replace("[P]", "[F][I][I][F]")
        .replace("[F][F]", "[F]")
    )
    return re.sub(r"\[F\](?=[^\s<\[])", "[F] ", text)


@given(st.lists(st.sampled_from([PLACE, MARKER, *map(ord, "a, <\n")]), max_size=12))
def test_c6_ids_are_those_of_the_text_that_transformers_writes(prompt: list[int]) -> None:
    ids, placed = spliced(prompt)
    assert "".join(WORDS.get(token, chr(token)) for token in ids) == as_transformers(prompt)
    ends = [start + len(tokens) for start, tokens in placed]
    assert all(end <= start for end, (start, _) in zip(ends, placed[1:], strict=False)), "items stay apart"
    for start, tokens in placed:
        assert ids[start : start + len(tokens)] == tokens
        assert tokens.count(EMBED) == 2, "whatever is shared, no embedding loses its place"


def test_an_edge_that_stands_in_the_prompt_is_shared_too() -> None:
    assert spliced([EDGE, PLACE, EDGE, ord("a")])[0] == [*EXPANSION, ord(" "), ord("a")]


def test_without_the_rule_nothing_is_joined() -> None:
    assert spliced([PLACE, PLACE, ord("a")], TouchRule(shared=False, spaced=False))[0] == [*EXPANSION * 2, ord("a")]
