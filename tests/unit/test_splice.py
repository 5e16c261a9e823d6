"""Expansions take their placeholders' places, and nothing else changes (C4, C6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.placeholders.splice import find_targets, occurrences, splice

pytestmark = pytest.mark.processing

IMAGE, AUDIO = [900], [901, 902]
TEXT = st.lists(st.integers(0, 50), max_size=5)


@given(
    st.lists(st.tuples(TEXT, st.sampled_from(["image", "audio"]), st.lists(st.integers(100, 110), max_size=4))), TEXT
)
def test_c4_c6_each_item_lands_in_its_own_place(parts: list[tuple[list[int], str, list[int]]], tail: list[int]) -> None:
    """Built from parts, spliced and compared with the same parts put together directly; empty texts make items touch."""
    targets = {"image": IMAGE, "audio": AUDIO}
    prompt, expected, expansions = [], [], {"image": [], "audio": []}
    starts = []
    for text, modality, expansion in parts:
        prompt += text + targets[modality]
        expected += text
        starts.append((modality, len(expected)))
        expected += expansion
        expansions[modality].append(expansion)
    prompt, expected = prompt + tail, expected + tail

    found = find_targets(prompt, targets)
    ids, placed = splice(prompt, found, expansions)

    assert ids == expected
    assert [(target.modality, start) for target, start in placed] == starts
    for modality in targets:
        indices = [target.index for target in found if target.modality == modality]
        assert indices == list(range(len(expansions[modality])))


def test_a_placeholder_that_begins_with_anothers_token_wins_where_it_is_whole() -> None:
    found = find_targets([7, 8, 1, 7, 2], {"short": [7], "long": [7, 8]})
    assert [(target.modality, target.start, target.end) for target in found] == [("long", 0, 2), ("short", 3, 4)]


def test_occurrences_do_not_overlap() -> None:
    assert occurrences([5, 5, 5, 5, 5], [5, 5]) == [0, 2]
    assert occurrences([5, 6, 5], [5, 6, 7]) == []
    assert occurrences([1, 2], []) == []
