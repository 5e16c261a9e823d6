"""Our backend answers as transformers does, family by family and case by case.

The comparison is `compat.parity`: real engine, real processors, tiny random checkpoints, HF `generate` in float32. Each
test names the contracts that its case would break (C1 to C12).
"""

from collections.abc import Mapping
from typing import Any

import pytest

from compat.expected import FOUNDATION, RIGHT
from compat.parity.cases import CASE_NAMES, cases
from compat.parity.media import REFUSED
from compat.zoo import spec
from hf_backend.check.compare import TOLERANCE

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

FAMILIES = RIGHT["image"]

CASES = CASE_NAMES
"""What the fixture `parity` asks for this module."""

CONTRACTS = {case.name: case.contracts for case in cases(spec(FAMILIES[0]))}


def _case_id(name: str) -> str:
    return "-".join((name, *CONTRACTS[name]))


@pytest.mark.parametrize("case", CASE_NAMES, ids=_case_id)
@pytest.mark.parametrize("family", FAMILIES)
def test_c12_answers_equal_hf_generate(family: str, case: str, parity: Mapping[str, Any]) -> None:
    """C12 and the contracts in the test's id: expanded prompt, tokens and log-probabilities equal those of HF."""
    result = parity[family]
    assert result["error"] is None, f"{result['error']}; output in {result['log']}"
    found = result["cases"][case]
    if found["not_applicable"] is not None:
        assert family in REFUSED, found
        pytest.skip(found["not_applicable"])
    assert found["right"], f"{found['wrong']}; output in {result['log']}"
    assert found["difference"] <= TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_served_by_our_class(family: str, parity: Mapping[str, Any]) -> None:
    """The engine's model is an instance of a class of this package, not of vLLM's own."""
    assert str(parity[family]["model_class"]).startswith("hf_backend."), parity[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_c2_repeated_request_does_not_call_the_processor(family: str, parity: Mapping[str, Any]) -> None:
    """C2: a request seen before is answered from the cache; the counter shows calls for the first one only."""
    first, second = parity[family]["cases"]["repeated"]["processor_calls"]
    assert first >= 1
    assert second == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_never_more_processor_calls_than_items(family: str, parity: Mapping[str, Any]) -> None:
    """N items that are not cached take at most N calls of the HF processor, whatever stands beside them."""
    for case in cases(spec(family)):
        found = parity[family]["cases"][case.name]
        if found["not_applicable"] is not None:
            continue
        cached: set[object] = set()
        for asked_together, calls in zip(case.rounds, found["processor_calls"], strict=True):
            items = [item for request in asked_together for item in request.items]
            assert calls <= sum(item not in cached for item in items), (case.name, calls, items)
            cached.update(items)


def test_none_of_the_first_families_goes_missing() -> None:
    """The eleven that this package began with are among those expected to be right."""
    assert set(FOUNDATION) <= set(FAMILIES)
    assert len(FOUNDATION) == 11
