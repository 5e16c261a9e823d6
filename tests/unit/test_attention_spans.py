"""Rows cut at the spans see what the dense mask lets them see (C12), for any batch, spans and windows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.attention.rule import Span, dense_mask, runs
from hf_backend.attention.spans import Pass, SpanCut, cut


def seen(passes: tuple[Pass, ...], request: int, num_rows: int, length: int, row: int) -> torch.Tensor:
    """What the kernel lets the rows of one request see, by the rules measured of it: a sequence's rows are its last ones;
    not causal, it sees its window to both sides."""
    mask = torch.zeros(num_rows, length, dtype=torch.bool)
    written = torch.zeros(num_rows, dtype=torch.bool)
    for number, one in enumerate(passes):
        for piece in one.pieces:
            if piece.request != request:
                continue
            rows = torch.arange(piece.start, piece.stop)
            position = (piece.seq_len - (piece.stop - piece.start) + rows - piece.start)[:, None]
            key = torch.arange(length)[None]
            visible = key < piece.seq_len
            if one.window is not None:
                visible = visible & (key > position - one.window) & (key < position + one.window)
            if piece.causal:
                visible = visible & (key <= position)
            mask[rows - row] = visible
            assert number > 0 or not written[rows - row].any(), "the first pass has a row twice"
            written[rows - row] = True
    assert written.all(), "a row in no pass"
    return mask


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, int, list[Span]]:
    """Rows in the step, length with them, and spans that the step's rows don't end within."""
    gaps = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 25)), max_size=4))
    spans: list[Span] = []
    position = 0
    for gap, size in gaps:
        spans.append((position + gap, position + gap + size - 1))
        position += gap + size
    length = max(1, position + draw(st.integers(0, 8)))
    if draw(st.booleans()):  # Spans that are still to come.
        spans.append((length + draw(st.integers(0, 3)), length + 20))
    done = draw(st.integers(0, length - 1))
    return length - done, length, spans


@given(
    batch=st.lists(requests(), min_size=1, max_size=4),
    window=st.one_of(st.none(), st.integers(1, 12)),
    clamped=st.booleans(),
)
def test_cut_rows_see_what_the_dense_mask_says(
    batch: list[tuple[int, int, list[Span]]], window: int | None, clamped: bool
) -> None:
    """Every row of every request, with decode rows, prefix hits inside a span, spans longer than the window and others."""
    spans = {index: spans for index, (_, _, spans) in enumerate(batch)}
    passes = cut([rows for rows, _, _ in batch], [length for _, length, _ in batch], spans, window, clamped)
    row = 0
    for index, (num_rows, length, own) in enumerate(batch):
        known = [(first, last) for first, last in own if last < length]
        expected = dense_mask(length, known, window, clamped)[length - num_rows :]
        if not passes:
            assert torch.equal(expected, dense_mask(length, (), window, clamped)[length - num_rows :])
            continue
        assert torch.equal(seen(passes, index, num_rows, length, row), expected)
        row += num_rows


def test_nothing_to_do_is_no_pass() -> None:
    """Decode rows, text and spans long past keep vLLM's own metadata."""
    assert cut([1, 5], [40, 5], {0: [(3, 20)]}, None, clamped=True) == ()
    assert cut([9], [9], {}, 4, clamped=True) == ()


def test_a_span_longer_than_the_window_takes_few_passes() -> None:
    """Passes grow with the logarithm of the span's length in windows."""
    passes = cut([1000], [1000], {0: [(100, 899)]}, 100, clamped=True)
    assert [one.window for one in passes] == [100, 200, 400, 800]


def test_a_cut_span_is_an_error() -> None:
    """Keys that don't exist yet can't be seen: the scheduler has to keep a span in one step."""
    with pytest.raises(SpanCut, match="positions 4 to 12"):
        cut([10], [10], {0: [(4, 12)]}, None, clamped=True)


def test_runs() -> None:
    """Runs of embeddings, also at the ends."""
    assert runs(torch.tensor([True, True, False, False, True, False, True])) == [(0, 1), (4, 4), (6, 6)]
    assert runs(torch.tensor([False])) == []
