"""Edges of an expansion that the prompt has already are left out as the processor was seen to (C5), whatever else is there."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.placeholders.splice import find_targets, splice
from hf_backend.placeholders.wrapping import beside, edges
from hf_backend.records import Wrapping

pytestmark = pytest.mark.processing

PLACE, HEAD, TAIL, EMBED = 1, 2, 3, 9
NEITHER_THERE = Wrapping(
    (HEAD,),
    (TAIL,),
    {(a, b): (a or b, a or b) for a in (False, True) for b in (False, True)},
    sees_expansions=False,
)
"""Qwen2-Audio before transformers 5.15."""
FAKE = 2
NO_DOUBLES = Wrapping(
    (FAKE,), (FAKE,), {(a, b): (a, b) for a in (False, True) for b in (False, True)}, sees_expansions=True
)
"""Idefics2: no token twice in a row, wherever it came from."""


def spliced(prompt: list[int], expansion: list[int], rule: Wrapping | None) -> list[int]:
    found = find_targets(prompt, {"audio": [PLACE]})
    return splice(prompt, found, beside(prompt, found, {"audio": [expansion] * len(found)}, {"audio": rule}))[0]


@given(st.lists(st.sampled_from([PLACE, HEAD, TAIL, 5, 6]), max_size=12), st.integers(1, 4))
def test_put_in_only_where_neither_is_there(prompt: list[int], count: int) -> None:
    expected: list[int] = []
    for at, token in enumerate(prompt):
        bare = prompt[at - 1 : at] == [HEAD] or prompt[at + 1 : at + 2] == [TAIL]
        core = [EMBED] * count
        expected += [token] if token != PLACE else core if bare else [HEAD, *core, TAIL]
    assert spliced(prompt, [HEAD, *[EMBED] * count, TAIL], NEITHER_THERE) == expected


@given(st.lists(st.sampled_from([PLACE, 5, 6]), max_size=12), st.integers(1, 3))
def test_no_token_twice_beside_a_touching_expansion(prompt: list[int], count: int) -> None:
    doubled = spliced(prompt, [FAKE, *[EMBED] * count, FAKE], None)
    expected = [token for at, token in enumerate(doubled) if token != FAKE or doubled[at - 1 : at] != [FAKE]]
    assert spliced(prompt, [FAKE, *[EMBED] * count, FAKE], NO_DOUBLES) == expected


def test_an_item_of_embeddings_without_the_edges_stays_as_it_is() -> None:
    """Pre-computed embeddings have the frame that both probe items agreed in, which may be none."""
    assert spliced([HEAD, PLACE, TAIL], [EMBED, EMBED], NEITHER_THERE) == [HEAD, EMBED, EMBED, TAIL]


def test_edges_are_what_is_neither_text_nor_embedding() -> None:
    def is_text(token: int) -> bool:
        return token == 5

    embeds = frozenset({EMBED})
    assert edges([HEAD, EMBED, TAIL], embeds, is_text) == (1, 1)
    assert edges([5, HEAD, EMBED, TAIL, 5], embeds, is_text) == (0, 0), "Gemma3: text at the edges may be merged"
    assert edges([HEAD, HEAD, 5, EMBED], embeds, is_text) == (2, 0)
    assert edges([HEAD], embeds, is_text) == (0, 0)


def test_no_rule_changes_nothing() -> None:
    found = find_targets([HEAD, PLACE], {"audio": [PLACE]})
    kept: Any = beside([HEAD, PLACE], found, {"audio": [(HEAD, EMBED)]}, {"audio": None})
    assert kept == {"audio": [[HEAD, EMBED]]}
