"""Calls bounded by memory: what a call takes is measured, and items share one as long as they fit (C8)."""

import gc
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_backend.encoding.encode import encode
from hf_backend.encoding.items import EncoderItem
from hf_backend.encoding.memory import BUDGET_ENV, CPU_BUDGET, Cost, LiveBytes, budget, chunks
from hf_backend.records import FieldLayout, Joining

pytestmark = pytest.mark.encoding

CPU = torch.device("cpu")
LAYOUTS = {"rows": FieldLayout(Joining.CONCATENATED, 0)}
sizes = st.lists(st.integers(1, 40), max_size=20)


def item(rows: int, number: int = 0) -> EncoderItem:
    return EncoderItem({"rows": torch.full((rows, 2), float(number))}, rows, torch.tensor([7]))


@given(sizes, st.floats(1, 500), st.floats(0, 3), st.floats(0, 0.5))
def test_chunks_keep_to_the_budget_and_the_order(
    rows: list[int], bytes_there: float, linear: float, square: float
) -> None:
    cost = Cost(linear, square)
    found = chunks(rows, cost, bytes_there)
    assert [index for chunk in found for index in chunk] == list(range(len(rows)))
    for chunk in found:
        assert len(chunk) == 1 or sum(cost.of(rows[index]) for index in chunk) <= bytes_there * (1 + 1e-9)
    for one, other in itertools.pairwise(found):
        prices = sum(cost.of(rows[index]) for index in [*one, other[0]])
        assert prices > bytes_there * (1 - 1e-9), "the next item would have fitted"


@given(sizes, st.floats(1, 500))
def test_c8_the_result_does_not_depend_on_the_chunks(rows: list[int], bytes_there: float) -> None:
    items = [item(count, number) for number, count in enumerate(rows)]
    calls: list[int] = []

    def run(given_items: object) -> torch.Tensor:
        assert isinstance(given_items, list)
        calls.append(len(given_items))
        return torch.cat([each.fields["rows"] for each in given_items])

    cost = Cost(1.0)
    found = encode(
        items, LAYOUTS, True, run, "test", lambda some: chunks([each.num_embeds for each in some], cost, bytes_there)
    )
    assert all(torch.equal(a, b.fields["rows"]) for a, b in zip(found, items, strict=True))
    assert len(calls) == len(chunks(rows, cost, bytes_there))


def test_without_a_measurement_a_bucket_is_one_call() -> None:
    assert chunks([5, 900], None, 1.0) == [[0, 1]]


@pytest.mark.parametrize(
    ("alone", "joined", "size", "expected"),
    [
        (((10, 100), (20, 200)), 300, 40, 400),
        (((10, 200), (20, 600)), 800, 30, 1200),
        (((10, 100), (20, 200)), 600, 40, 800),
        (((10, 100), (10, 100)), 200, 40, 400),
        (((20, 150), (10, 100)), 250, 40, 400),
    ],
    ids=["by size", "by its square", "more together than alone", "one size only", "a fixed part counts as size"],
)
def test_cost(alone: tuple[tuple[int, int], ...], joined: int, size: int, expected: float) -> None:
    assert Cost.fit(alone, [size for size, _ in alone], joined).of(size) == pytest.approx(expected)


def test_live_bytes_are_those_of_tensors_that_live() -> None:
    """Views are nothing new, and what is gone makes room."""
    weight = torch.ones(256)
    gc.disable()
    try:
        with LiveBytes() as counted:
            one = weight[:64] * 2  # a view of what was there before, and 256 bytes
            assert counted.now == 256
            for _ in range(4):
                two = torch.cat([one, one])  # 512 bytes, and the last one's until they are there
            del two
            assert counted.now == 256
    finally:
        gc.enable()
    assert counted.peak == 256 + 2 * 512


def test_live_bytes_count_a_storage_in_the_place_of_one_that_is_gone() -> None:
    """A tensor from outside may be freed during the run, and its address used again."""
    with LiveBytes() as counted:
        for _ in range(50):
            outside = torch.tensor([1.0] * 64)  # made without an operation
            made = outside * 2
            assert counted.now >= made.nbytes
            del outside, made
            again = [torch.empty(64).fill_(0.0) for _ in range(4)]
            assert counted.now >= 4 * again[0].nbytes
            del again


def test_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BUDGET_ENV, raising=False)
    assert budget(CPU) == CPU_BUDGET
    monkeypatch.setenv(BUDGET_ENV, "1.5")
    assert budget(CPU) == 1.5 * 2**20
    for wrong in ("", "much", "0", "-3", "nan"):
        monkeypatch.setenv(BUDGET_ENV, wrong)
        with pytest.raises(ValueError, match=BUDGET_ENV):
            budget(CPU)
