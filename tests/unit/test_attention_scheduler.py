"""Steps end where no span is cut (C12): the rows of a span have to see all of its keys."""

import pytest

from hf_backend.attention.scheduler import uncut

pytestmark = pytest.mark.language


@pytest.mark.parametrize(
    ("done", "new", "expected"),
    [
        (0, 10, 10),  # ends where the span begins
        (0, 12, 10),  # would end inside: back to its begin
        (0, 20, 20),  # takes the span whole
        (10, 5, 0),  # the span is the step's first token: vLLM would cut it
        (10, 10, 10),
        (12, 3, 0),  # the rest of a span of which a part is in the cache
        (12, 8, 8),
        (20, 7, 7),
    ],
)
def test_a_step_ends_outside_spans(done: int, new: int, expected: int) -> None:
    """One span, positions 10 to 19."""
    assert uncut(done, new, [(10, 19)]) == expected


def test_back_over_spans_that_touch() -> None:
    """Back to the begin of the one that would be cut, not further."""
    assert uncut(0, 25, [(5, 14), (15, 30)]) == 15
