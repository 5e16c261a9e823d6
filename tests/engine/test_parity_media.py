"""Our backend answers as transformers does where a prompt holds videos or clips of sound.

The comparison is `compat.parity`, as in `test_parity`. Each test names the contracts that its case would break (C1 to C12).
"""

from collections.abc import Mapping
from typing import Any

import pytest

from compat.expected import RIGHT
from compat.parity.media import CLIP_CASE_NAMES, LEFT_OUT, REFUSED, VIDEO_CASE_NAMES, WOVEN_CASE_NAMES, all_cases
from compat.zoo import spec
from hf_backend.check.compare import TOLERANCE

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

VIDEO_FAMILIES, CLIP_FAMILIES = RIGHT["video"], RIGHT["audio"]
FAMILIES = (*VIDEO_FAMILIES, *CLIP_FAMILIES)

CASES = (*VIDEO_CASE_NAMES, *CLIP_CASE_NAMES, *WOVEN_CASE_NAMES)
"""What the fixture `parity` asks for this module."""

SEVERAL_CLIPS = ("two_clips", "two_clips_of_one_length", "adjacent_clips")


def _asked(families: tuple[str, ...], names: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(family, case.name, id="-".join((family, case.name, *case.contracts)))
        for family in families
        for case in all_cases(spec(family))
        if case.name in names
    ]


@pytest.mark.parametrize(
    ("family", "case"),
    _asked(VIDEO_FAMILIES, (*VIDEO_CASE_NAMES, *WOVEN_CASE_NAMES)) + _asked(CLIP_FAMILIES, CLIP_CASE_NAMES),
)
def test_c12_answers_equal_hf_generate(family: str, case: str, parity: Mapping[str, Any]) -> None:
    """C12 and the contracts in the test's id: expanded prompt, tokens and log-probabilities equal those of HF.

    Skipped only where the tables in `compat.parity.media` say that transformers itself has no answer.
    """
    result = parity[family]
    assert result["error"] is None, f"{result['error']}; output in {result['log']}"
    found = result["cases"][case]
    if found["not_applicable"] is not None:
        assert (family, case) in LEFT_OUT or (family in REFUSED and case in SEVERAL_CLIPS), found
        pytest.skip(found["not_applicable"])
    assert found["right"], f"{found['wrong']}; output in {result['log']}"
    assert found["difference"] <= TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_served_by_our_class(family: str, parity: Mapping[str, Any]) -> None:
    """The engine's model is an instance of a class of this package, not of vLLM's own."""
    assert str(parity[family]["model_class"]).startswith("hf_backend."), parity[family]


@pytest.mark.parametrize(
    ("family", "case"),
    [(family, "repeated_video") for family in VIDEO_FAMILIES] + [(family, "repeated_clip") for family in CLIP_FAMILIES],
)
def test_c2_repeated_request_does_not_call_the_processor(family: str, case: str, parity: Mapping[str, Any]) -> None:
    """C2: a request seen before is answered from the cache; the counter shows calls for the first one only."""
    first, second = parity[family]["cases"][case]["processor_calls"]
    assert first >= 1
    assert second == 0
