"""The parity runner itself: a wrong answer is seen, and a child that fails, dies or hangs is reported as that."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat.parity.cases import Case, Picture, Request
from compat.parity.children import Task, run_forked
from compat.parity.engine import EngineRun, Round, choose_peer
from compat.parity.report import Result, judge, markdown
from hf_backend.check.compare import TIE, TOLERANCE, Answer, EngineAnswer, Verdict, compare, join


def _logprobs() -> "np.ndarray[Any, np.dtype[np.float32]]":
    # Three steps over four tokens; tokens 2 and 3 are nearly equal in the last.
    return np.array(
        [[-0.1, -3.0, -4.0, -5.0], [-4.0, -0.2, -3.0, -5.0], [-5.0, -4.0, -0.8, -0.8 - TIE / 2]], dtype=np.float32
    )


EXPECTED = Answer(prompt_ids=(7, 8, 9), tokens=(0, 1, 2), logprobs=_logprobs())


def _found(**changes: Any) -> EngineAnswer:
    told = tuple({token: float(value) for token, value in enumerate(row)} for row in _logprobs())
    answer = {"prompt_ids": (7, 8, 9), "tokens": (0, 1, 2), "logprobs": told}
    return EngineAnswer(**(answer | changes))


def test_equal_answers_are_right() -> None:
    verdict = compare(EXPECTED, _found())
    assert verdict.wrong is None
    assert verdict.compared == 3
    assert verdict.difference < 1e-6


def test_a_difference_of_the_prompt_is_seen() -> None:
    """C3, C6: even when the answer happens to be equal."""
    wrong = compare(EXPECTED, _found(prompt_ids=(7, 5, 9))).wrong
    assert wrong is not None
    assert "first difference at 1" in wrong
    shorter = compare(EXPECTED, _found(prompt_ids=(7, 8))).wrong
    assert shorter is not None
    assert "found 2 ids; expected 3" in shorter


def test_a_difference_of_a_logprob_is_seen() -> None:
    """Equal tokens prove little with random weights; the probabilities are compared as well."""
    told = [dict(step) for step in _found().logprobs]
    told[1][2] += 2 * TOLERANCE
    verdict = compare(EXPECTED, _found(logprobs=tuple(told)))
    assert verdict.wrong is not None
    assert verdict.wrong.startswith("token 1: log-probability of id 2")
    assert verdict.difference == pytest.approx(2 * TOLERANCE, rel=1e-3)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_logprob_that_is_no_number_is_seen(value: float) -> None:
    told = [dict(step) for step in _found().logprobs]
    told[0][0] = value
    assert compare(EXPECTED, _found(logprobs=tuple(told))).wrong is not None


def test_another_token_is_wrong_unless_it_is_a_tie() -> None:
    """C12: "ties below 1e-3 aside"; after a tie the answers go different ways and are compared no further."""
    assert compare(EXPECTED, _found(tokens=(0, 1, 3))).wrong is None
    verdict = compare(EXPECTED, _found(tokens=(0, 2, 2)))
    assert verdict.wrong is not None
    assert "token 1: found id 2; expected 1" in verdict.wrong


def test_a_short_answer_is_wrong() -> None:
    assert compare(EXPECTED, _found(tokens=(0, 1))).wrong is not None
    assert compare(EXPECTED, _found(logprobs=())).wrong is not None


def test_joined_verdicts_keep_the_first_wrong_and_the_largest_difference() -> None:
    joined = join([Verdict(1e-5, 3), Verdict(1e-4, 2, "second"), Verdict(float("nan"), 0, "third")])
    assert joined == Verdict(1e-4, 5, "second")


def test_judge_and_table_tell_right_from_wrong() -> None:
    request = Request(("a", Picture(7, 5, 1), "b"))
    case = Case("one", "", ("C12",), ((request,), (request,)))
    rounds = (Round((_found(),), 1), Round((_found(prompt_ids=(7,)),), 0))
    (found,) = judge(EngineRun({"one": rounds}, "m.C", 0, 1.0), {request: EXPECTED}, [case]).values()
    assert not found.right
    assert found.processor_calls == (1, 0)
    wrong = Result("f", "ours", 1.0, cases={"one": found})
    failed = Result("g", "ours", 1.0, error="no engine")
    assert not wrong.right
    assert not failed.right
    assert not Result("h", "ours", 1.0).right, "nothing asked is nothing shown"
    table = markdown([wrong, failed], ["one"]).splitlines()
    assert "**wrong**" in table[2]
    assert "error" in table[3]
    assert wrong.as_json()["right"] is False


def _fail() -> None:
    print("said before failing")
    raise ValueError("broken on purpose\nsecond line")


@pytest.mark.timeout(60)
def test_children_are_reported_one_by_one(tmp_path: Path) -> None:
    """A failing, a dying and a hanging child, and one with a large result: each gives its own outcome."""
    tasks = [
        Task("good/x", lambda: "y" * 1_000_000),
        Task("failing", _fail),
        Task("dying", lambda: os._exit(3)),
        Task("hanging", lambda: time.sleep(600)),
    ]
    outcomes = {outcome.task.name: outcome for outcome in run_forked(tasks, logs=tmp_path, jobs=4, limit_s=5)}
    assert set(outcomes) == {task.name for task in tasks}
    assert outcomes["good/x"].error is None
    assert outcomes["good/x"].result == "y" * 1_000_000
    assert outcomes["failing"].error == "ValueError: broken on purpose"
    log = outcomes["failing"].log.read_text()
    assert "said before failing" in log
    assert "second line" in log
    assert "died without a result" in str(outcomes["dying"].error)
    assert "after 5 s" in str(outcomes["hanging"].error)


@pytest.mark.timeout(60)
def test_children_are_ended_when_the_caller_stops(tmp_path: Path) -> None:
    """Leaving the loop early ends the children that still run."""
    tasks = [Task("quick", lambda: os.getpid()), Task("slow", lambda: time.sleep(600))]
    (tmp_path / "logs").mkdir()
    running = run_forked(tasks, logs=tmp_path / "logs", jobs=2)
    assert next(running).task.name == "quick"
    running.close()  # type: ignore[attr-defined]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_unknown_peer_is_refused() -> None:
    with pytest.raises(ValueError, match="ours, in-tree, native"):
        choose_peer("nonesuch")
