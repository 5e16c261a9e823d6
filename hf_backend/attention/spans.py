"""Cutting a step's rows where attention goes both ways.

Pure functions over ints. Takes how many rows each request has in a step, how long it then is, and its spans; gives passes of
an attention kernel that has one causal flag a sequence and one window a call, as vLLM's CPU kernel: the rows of a sequence
are its last ones, and a sequence that isn't causal sees its window to both sides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hf_backend.attention.rule import Span


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that the kernel takes for one sequence."""

    request: int
    """Whose keys they see: its row of the block table."""
    start: int
    stop: int
    """Rows of the step, `range(start, stop)`."""
    seq_len: int
    """How many of the request's keys there are to them."""
    causal: bool


@dataclass(frozen=True, slots=True)
class Pass:
    """One call of the kernel. What a later pass computes for a row replaces what an earlier one did."""

    window: int | None
    """Keys to each side, a row's own included; None for all."""
    pieces: tuple[Piece, ...]


class SpanCut(ValueError):
    """A span goes on behind the step's rows, so that keys its rows have to see don't exist yet."""


def cut(
    query_lens: Sequence[int],
    seq_lens: Sequence[int],
    spans: Mapping[int, Sequence[Span]],
    window: int | None,
    clamped: bool,
) -> tuple[Pass, ...]:
    """The passes that give each row what `rule.dense_mask` lets it see; none where plain causal attention does.

    `query_lens[r]` rows of request r are its last of `seq_lens[r]` tokens. `spans[r]` holds runs of positions that see one
    another, in any order, without overlaps. The first pass has every row, with the window as it is; spans longer than the
    window take more. Raises `SpanCut` for a span that isn't finished within the step's rows.
    """
    first: list[Piece] = []
    further: dict[int | None, list[Piece]] = {}
    row = 0
    touched = False
    for request, (num_rows, length) in enumerate(zip(query_lens, seq_lens, strict=True)):
        done = length - num_rows
        place = row - done
        """What turns a position of the request into a row."""
        position = done
        for begin, end in sorted(spans.get(request, ())):
            if end < done or begin >= length or begin == end:
                continue
            if end >= length:
                raise SpanCut(f"positions {begin} to {end} of a request that has {length} tokens in this step")
            touched = True
            begin_row = max(begin, done)
            if begin_row > position:
                first.append(Piece(request, place + position, place + begin_row, begin_row, causal=True))
            first.append(Piece(request, place + begin_row, place + end + 1, end + 1, causal=False))
            if window is not None and end - begin >= window:
                for size, start, stop in _long_span(begin, end, begin_row, window, clamped):
                    further.setdefault(size, []).append(
                        Piece(request, place + start, place + stop, end + 1, causal=False)
                    )
            position = end + 1
        if position < length:
            first.append(Piece(request, place + position, place + length, length, causal=True))
        row += num_rows
    if not touched:
        return ()
    return (Pass(window, tuple(first)), *(Pass(size, tuple(pieces)) for size, pieces in further.items()))


def _long_span(begin: int, end: int, first: int, window: int, clamped: bool) -> list[tuple[int | None, int, int]]:
    """Windows and ranges of positions for the rows from `first` on of a span longer than `window`.

    A row q is to see the keys from q - window + 1 to `end`, but the kernel's window is as wide to the right. Taken for the
    sequence's last rows, so d positions later than they are, and with a window wider by d, rows see as far to the left as
    they should, and as far as the span goes if they lie within the widened window of its end: so d doubles with each range
    that is done, and a span of n windows takes log2(n) passes.
    """
    ranges: list[tuple[int | None, int, int]] = []
    # Where the window doesn't bound a span, rows further into it than the window see all of the span and nothing before.
    bounded_end = end if clamped else min(end, begin + window - 1)
    shift = window
    while end - shift >= first:
        start, stop = max(first, end - 2 * shift - window + 1), min(end - shift, bounded_end) + 1
        if start < stop:
            ranges.append((window + end - (stop - 1), start, stop))
        shift = 2 * shift + window
    if bounded_end == end:
        return ranges
    start = max(first, bounded_end + 1)
    if begin == 0:
        return [*ranges, (None, start, end + 1)]
    # One row a sequence: each is the last of its sequence, and the window reaches from there to the span's begin.
    return [*ranges, *((end - begin + 1, row, row + 1) for row in range(start, end + 1))]
