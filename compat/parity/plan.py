"""One parity run: references first, then one import of vLLM, then an engine a family and peer.

Takes families, peers and cases; gives a `Result` each. Not for the command line (`compat.parity.__main__`).
"""

import functools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from compat.parity import engine, preload, reference
from compat.parity.cases import Case, Request
from compat.parity.children import Outcome, Task, run_forked
from compat.parity.media import LEFT_OUT, all_cases
from compat.parity.reference import Refusal
from compat.parity.report import CaseResult, Result, judge
from compat.zoo import spec
from hf_backend.check.compare import Answer


def run_all(
    families: Sequence[str],
    peers: Sequence[str],
    case_names: Sequence[str],
    *,
    jobs: int = 1,
    say: Callable[[str], None] = print,
) -> Iterator[Result]:
    """Run the cases named `case_names` of every family on every peer; yields results as `jobs` engines at once end.

    The environment must be prepared and vLLM not imported yet. A family whose reference fails gives one failed result a
    peer; one that takes the items of none of the cases gives none. Progress goes to `say`.
    """
    families = [family for family in families if _cases(family, case_names)]
    logs = Path(tempfile.mkdtemp(prefix="parity-"))
    say(f"asking transformers: {len(families)} families, {len(case_names)} cases (output of all children: {logs})")
    start = time.perf_counter()
    from transformers import AutoModelForImageTextToText, AutoProcessor  # noqa: F401  (once, for all children)

    failed: dict[str, Outcome] = {}
    tasks = [Task(f"{family}/reference", functools.partial(_refer, family, case_names)) for family in families]
    for outcome in run_forked(tasks, logs=logs, jobs=jobs):
        if outcome.error is not None:
            failed[outcome.task.name.partition("/")[0]] = outcome
    say(f"transformers answered in {time.perf_counter() - start:.1f} s; importing vLLM")
    for family, outcome in failed.items():
        for peer in peers:
            yield Result(family, peer, outcome.seconds, error=f"reference: {outcome.error}", log=str(outcome.log))

    start = time.perf_counter()
    preload.import_engine()
    warm_up = [Task(f"class-of/{peer}", functools.partial(preload.inspect_model_class, peer)) for peer in peers]
    for outcome in run_forked(warm_up, logs=logs):
        if outcome.error is not None:  # the engine will say the same, with its family
            say(f"{outcome.task.name}: {outcome.error}")
    say(f"ready in {time.perf_counter() - start:.1f} s; {len(families) * len(peers)} engines to run")
    tasks = [
        Task(f"{family}/{peer}", functools.partial(_run_and_judge, family, case_names, peer))
        for family in families
        if family not in failed
        for peer in peers
    ]
    for outcome in run_forked(tasks, logs=logs, jobs=jobs):
        family, _, peer = outcome.task.name.partition("/")
        result = Result(family, peer, outcome.seconds, error=outcome.error, log=str(outcome.log))
        if outcome.error is None:
            judged, model_class, start_seconds = outcome.result
            result = Result(
                family,
                peer,
                outcome.seconds,
                start_seconds=start_seconds,
                model_class=model_class,
                log=str(outcome.log),
                cases=judged,
            )
        yield result
    preload.release()


def _cases(family: str, names: Sequence[str]) -> list[Case]:
    return [case for case in all_cases(spec(family)) if case.name in names]


def _refer(family: str, case_names: Sequence[str]) -> str:
    return reference.summary(_answers(family, _cases(family, case_names)))


def _answers(family: str, chosen: Sequence[Case]) -> dict[Request, Answer | Refusal]:
    return reference.reference(family, [case for case in chosen if (family, case.name) not in LEFT_OUT])


def _why_not(family: str, case: Case, answers: Mapping[Request, Answer | Refusal]) -> str | None:
    """Why `case` has nothing to compare with; None if it has."""
    if (family, case.name) in LEFT_OUT:
        return LEFT_OUT[family, case.name]
    found = [answers[request] for request in case.requests()]
    return next((f"transformers refuses: {one.message}" for one in found if isinstance(one, Refusal)), None)


def _run_and_judge(family: str, case_names: Sequence[str], peer: str) -> tuple[dict[str, CaseResult], str, float]:
    chosen = _cases(family, case_names)
    answers = _answers(family, chosen)
    reasons = {case.name: _why_not(family, case, answers) for case in chosen}
    asked = [case for case in chosen if reasons[case.name] is None]
    run = engine.run(family, asked, peer)
    given = {request: answer for request, answer in answers.items() if isinstance(answer, Answer)}
    results = judge(run, given, asked)
    for name, reason in reasons.items():
        if reason is not None:
            results[name] = CaseResult(False, None, None, (), not_applicable=reason)
    return results, run.model_class, run.start_seconds
