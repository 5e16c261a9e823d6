"""One parity run: references first, then one import of vLLM, then an engine a family and peer.

Takes families, peers and cases; gives a `Result` each. Not for the command line (`compat.parity.__main__`).
"""

import functools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compat.parity import engine, preload, reference
from compat.parity.cases import Case, cases
from compat.parity.children import Outcome, Task, run_forked
from compat.parity.report import CaseResult, Result, judge
from compat.zoo import spec


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
    peer. Progress goes to `say`.
    """
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
    return [case for case in cases(spec(family)) if case.name in names]


def _refer(family: str, case_names: Sequence[str]) -> str:
    return reference.summary(reference.reference(family, _cases(family, case_names)))


def _run_and_judge(family: str, case_names: Sequence[str], peer: str) -> tuple[dict[str, CaseResult], str, float]:
    chosen = _cases(family, case_names)
    run = engine.run(family, chosen, peer)
    return judge(run, reference.reference(family, chosen), chosen), run.model_class, run.start_seconds
