"""The matrix: what is left to run, what is joined, what became worse; all pure functions over results."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from compat.matrix import data, merge, plan, run, store, trees
from compat.matrix.records import CellResult, FamilyResult, Outcome, Pair
from compat.zoo import families
from hf_backend.versions import SUPPORTED_TRANSFORMERS, SUPPORTED_VLLM

A, B = Pair("0.31.0", "5.16.1"), Pair("0.32.0", "5.24.0")
RIGHT = FamilyResult("llava", 13, 13, 1e-6, None, 5.0)
WRONG = replace(RIGHT, right=12, problem="adjacent: token 0")
FAILS = FamilyResult("llava", 0, 0, None, "ValueError: no such weight", 5.0)


def _cell(pair: Pair = A, *found: FamilyResult, **changes: Any) -> CellResult:
    return replace(CellResult(pair, (), found, 30.0, "abc"), **changes)


def test_the_axes_are_in_order_and_supported() -> None:
    from packaging.specifiers import SpecifierSet

    for axis, supported in ((data.VLLM, SUPPORTED_VLLM), (data.TRANSFORMERS, SUPPORTED_TRANSFORMERS)):
        assert list(axis) == sorted(set(axis), key=Version)
        assert all(version in SpecifierSet(supported) for version in axis)
    assert set(data.CORE) <= set(families())
    assert len(data.grid()) == len(set(data.grid())) == len(data.VLLM) * len(data.TRANSFORMERS)
    assert set(data.corners()) < set(data.grid())
    assert data.COLUMN in data.corners()


def test_every_expectation_is_of_some_pair_and_says_why() -> None:
    for one in data.EXPECTATIONS:
        assert one.outcome is not Outcome.RIGHT
        assert one.reason
        assert any(one.holds_for(pair) for pair in data.grid())


def test_a_result_of_parity_counts_what_could_be_compared() -> None:
    case = {"right": True, "wrong": None, "not_applicable": None}
    cases = {
        "a": case,
        "b": case | {"right": False, "wrong": "token 1"},
        "c": case | {"right": False, "not_applicable": "x"},
    }
    entry: dict[str, Any] = {
        "family": "llava",
        "cases": cases,
        "error": None,
        "model_class": "hf_backend.models.X",
        "difference": 0.1,
        "seconds": 4.04,
    }
    found = FamilyResult.of_parity(entry)
    assert (found.right, found.judged, found.problem, found.outcome) == (1, 2, "b: token 1", Outcome.WRONG)
    assert FamilyResult.of_parity(entry | {"cases": {"a": case}}).outcome is Outcome.RIGHT
    # All right, and by somebody else: that is no result of ours.
    others = FamilyResult.of_parity(entry | {"cases": {"a": case}, "model_class": "vllm.models.X"})
    assert others.outcome is Outcome.WRONG
    failed = FamilyResult.of_parity(entry | {"cases": {}, "error": "ValueError: x", "model_class": None})
    assert (failed.outcome, failed.problem) == (Outcome.FAILS, "ValueError: x")


def test_a_pair_is_as_bad_as_its_worst_family() -> None:
    assert _cell(A, RIGHT).outcome is Outcome.RIGHT
    assert _cell(A, RIGHT, WRONG).outcome is Outcome.WRONG
    assert _cell(A, WRONG, FAILS, RIGHT).outcome is Outcome.FAILS
    assert _cell(A).outcome is Outcome.FAILS
    assert _cell(A, RIGHT, problem="it died").outcome is Outcome.FAILS


def test_only_what_is_missing_is_run() -> None:
    kept = {A: _cell(A, RIGHT)}
    assert plan.left([A, B], kept, ["llava"], "abc") == (B,)
    assert plan.families_left(A, kept, ["llava", "qwen2_vl"], "abc") == ("qwen2_vl",)
    assert plan.left([A], kept, ["llava"], "other sources") == (A,)
    # A family that failed is a result; a run that ended is not, and is run again.
    assert plan.left([A], {A: _cell(A, FAILS)}, ["llava"], "abc") == ()
    assert plan.left([A], {A: _cell(A, RIGHT, problem="it died")}, ["llava"], "abc") == (A,)


def test_families_of_two_runs_are_joined_only_from_the_same_sources() -> None:
    other = replace(RIGHT, family="qwen2_vl")
    joined = store.join(_cell(A, RIGHT), _cell(A, other))
    assert [family.family for family in joined.families] == ["llava", "qwen2_vl"]
    assert joined.seconds == 60.0
    assert store.join(_cell(A, RIGHT), _cell(A, WRONG)).families == (WRONG,)
    assert store.join(_cell(A, RIGHT, sources="older"), _cell(A, other)).families == (other,)


def test_results_survive_the_disk(tmp_path: Path) -> None:
    cell = _cell(A, WRONG, pip=("vLLM 0.31.0 wants transformers <5.16, not 5.16.1",))
    store.keep(cell, tmp_path)
    assert store.kept(tmp_path) == {A: cell}
    place = tmp_path / "results.json"
    store.commit({A: cell}, place)
    store.commit({B: _cell(B, RIGHT)}, place)
    assert store.stored(place) == {A: cell, B: _cell(B, RIGHT)}
    # One that wasn't run again stays stored.
    store.commit({B: _cell(B, replace(WRONG, family="aria"))}, place)
    assert [family.family for family in store.stored(place)[B].families] == ["aria", "llava"]
    store.commit({B: _cell(B, replace(RIGHT, family="aria"))}, place)
    assert [one["outcome"] for one in json.loads(place.read_text())] == ["wrong", "right"]
    assert store.stored(tmp_path / "none.json") == {}


def test_a_regression_is_what_was_right_and_is_not() -> None:
    before = {A: _cell(A, RIGHT), B: _cell(B, FAILS)}
    assert list(merge.regressions({A: _cell(A, RIGHT), B: _cell(B, FAILS)}, before)) == []
    assert list(merge.regressions({}, before)) == []
    assert list(merge.regressions({A: _cell(A, replace(RIGHT, family="other"))}, before)) == []
    (wrong,) = merge.regressions({A: _cell(A, WRONG)}, before)
    assert "llava was right" in wrong
    assert "adjacent: token 0" in wrong
    (died,) = merge.regressions({A: _cell(A, problem="it died")}, before)
    assert "it died" in died


def test_better_and_worse_than_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = Pair("0.29.0", "5.10.4"), Pair("0.29.0", "5.24.0")
    known = data.Expectation("<0.32", "<5.13", Outcome.FAILS, "weights are not found")
    monkeypatch.setattr(data, "EXPECTATIONS", (known,))
    assert list(merge.surprises({good: _cell(good, RIGHT)}, data.CORE)) == []
    ((worse, _),) = merge.surprises({good: _cell(good, WRONG)}, data.CORE)
    assert worse
    ((ended, _),) = merge.surprises({good: _cell(good, problem="it died")}, data.CORE)
    assert ended
    ((worse, text),) = merge.surprises({bad: _cell(bad, RIGHT)}, data.CORE)
    assert not worse
    assert "data.py" in text
    assert known.reason in text
    assert list(merge.surprises({bad: _cell(bad, FAILS)}, data.CORE)) == []
    # A family of the column alone says nothing of the pair.
    assert list(merge.surprises({good: _cell(good, replace(FAILS, family="aria"))}, data.CORE)) == []


def test_the_table_has_letters_for_everything() -> None:
    refused = _cell(B, RIGHT, pip=("no",))
    assert merge.mark(None) == "-"
    assert merge.mark(refused) == "Rp"
    assert merge.mark(_cell(A, RIGHT, FAILS)) == "F 1/2"
    lines = merge.markdown({A: _cell(A, WRONG), B: refused}, ("0.31.0", "0.32.0"), ("5.16.1", "5.24.0")).splitlines()
    assert lines[2] == "| 0.32.0 | - | Rp |"
    assert lines[3] == "| 0.31.0 | W 0/1 | - |"


def test_the_column_has_a_row_for_each_family_right_ones_first() -> None:
    text = merge.column(_cell(A, replace(FAILS, family="aria", problem="a | b"), RIGHT, replace(WRONG, family="zoo")))
    rows = text.splitlines()[2:5]
    assert [row.split(" | ")[0] for row in rows] == ["| llava", "| zoo", "| aria"]
    assert "a \\| b" in rows[2]
    assert text.endswith("1 of 3 families right.")


def test_pip_refuses_by_the_requirements_of_both() -> None:
    needs = {
        "vLLM 0.32.0": [Requirement("transformers>=5.16.1,<5.20"), Requirement("torch==2.13")],
        "transformers 5.24.0": [Requirement("tokenizers>=0.23.1"), Requirement("numpy>=1")],
    }
    versions = {"transformers": "5.24.0", "tokenizers": "0.24.0", "numpy": "0.9"}
    assert list(trees.refusals(needs, versions, between=("transformers", "tokenizers"))) == [
        "vLLM 0.32.0 wants transformers <5.20,>=5.16.1, not 5.24.0"
    ]
    assert len(list(trees.refusals(needs, versions))) == 2
    assert list(trees.refusals(needs, {"transformers": "5.19.0"})) == []


def test_a_pairs_process_finds_the_package_asked_for_first_and_shares_no_cache_with_another_vllm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "given")
    monkeypatch.setenv(trees.CACHE_VARIABLE, str(tmp_path))
    found = run.environment(A, [tmp_path / "transformers", tmp_path / "vllm"], tmp_path / "released")
    path = found["PYTHONPATH"].split(os.pathsep)
    expected = [tmp_path / "released", run.ROOT, tmp_path / "transformers", tmp_path / "vllm", Path("given")]
    assert [Path(part) for part in path] == expected
    assert found["VLLM_CACHE_ROOT"] != run.environment(B, [])["VLLM_CACHE_ROOT"]
    assert found["VLLM_CACHE_ROOT"] == run.environment(Pair(A.vllm, B.transformers), [])["VLLM_CACHE_ROOT"]


@pytest.mark.parametrize(
    ("done", "expected"), [(0, "0/4, 0:30 gone"), (2, "2/4, 0:30 gone, about 0:30 left"), (4, "4/4, 0:30 gone")]
)
def test_progress_says_how_long_it_takes(done: int, expected: str) -> None:
    bar, _, text = plan.progress(done, 4, 30.0).partition("] ")
    assert text == expected
    assert bar.count("#") == plan.WIDTH * done // 4


def test_the_picture_is_the_same_for_the_same_results(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="comes with the extra `test`")
    from compat.matrix.picture import draw

    results = {A: _cell(A, WRONG), B: _cell(B, RIGHT, pip=("no",))}
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    for place in (first, second):
        draw(results, ("0.31.0", "0.32.0"), ("5.16.1", "5.24.0"), place)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(b"\x89PNG")
    draw({}, ("0.31.0", "0.32.0"), ("5.16.1", "5.24.0"), second)
    assert first.read_bytes() != second.read_bytes()


def test_stored_results_are_of_the_axes() -> None:
    """What is committed can be compared with what a run gives: a release that was taken out of the axes is taken out there."""
    assert set(store.stored()) <= set(data.grid())
