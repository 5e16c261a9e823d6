"""The results of a run, as data and as a table.

Takes engine runs and reference answers; gives `Result`s, their JSON and a table family x case. Not for progress lines.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from compat.parity.cases import Case
from hf_backend.check.compare import TOLERANCE, compare, join

if TYPE_CHECKING:
    from compat.parity.cases import Request
    from compat.parity.engine import EngineRun
    from hf_backend.check.compare import Answer


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case of one family on one peer."""

    right: bool
    difference: float | None
    """Largest difference of a log-probability; None where nothing could be compared."""
    wrong: str | None
    """The first difference, in words."""
    processor_calls: tuple[int | None, ...]
    """Calls of the HF processor, round by round."""
    not_applicable: str | None = None
    """Why transformers gives nothing to compare with; the engine was not asked then, and `right` says nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """One family on one peer."""

    family: str
    peer: str
    seconds: float
    start_seconds: float | None = None
    model_class: str | None = None
    error: str | None = None
    """Why there are no cases: the engine did not start or a request failed."""
    log: str | None = None
    cases: Mapping[str, CaseResult] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether every case that could be compared was, and there was one."""
        judged = [case.right for case in self.cases.values() if case.not_applicable is None]
        return self.error is None and bool(judged) and all(judged)

    @property
    def difference(self) -> float | None:
        """Largest difference of a log-probability over all cases; None if nothing was compared."""
        found = [case.difference for case in self.cases.values() if case.difference is not None]
        return max(found, default=None)

    def as_json(self) -> dict[str, Any]:
        """The result as JSON types."""
        return {**asdict(self), "right": self.right, "difference": self.difference}


def judge(
    run: "EngineRun", answers: "Mapping[Request, Answer]", cases: Sequence[Case], *, tolerance: float = TOLERANCE
) -> dict[str, CaseResult]:
    """Compare every answer of `run` with that of transformers."""
    results = {}
    for case in cases:
        rounds = run.rounds[case.name]
        found = [answer for one in rounds for answer in one.answers]
        verdict = join(
            [
                compare(answers[request], answer, tolerance=tolerance)
                for request, answer in zip(case.requests(), found, strict=True)
            ]
        )
        results[case.name] = CaseResult(
            right=verdict.wrong is None,
            difference=None if math.isnan(verdict.difference) else verdict.difference,
            wrong=verdict.wrong,
            processor_calls=tuple(one.processor_calls for one in rounds),
        )
    return results


def markdown(results: Sequence[Result], case_names: Sequence[str]) -> str:
    """A Markdown table: a row for each family and peer, a column for each case, largest difference and seconds."""
    header = ["family", "peer", *(name.replace("_", " ") for name in case_names), "largest difference", "seconds"]
    rows = [header, ["---"] * len(header)]
    for result in results:
        failed = result.error is not None
        marks = ["error" if failed else _mark(result.cases.get(name)) for name in case_names]
        difference = "" if result.difference is None else f"{result.difference:.0e}"
        rows.append([result.family, result.peer, *marks, difference, f"{result.seconds:.1f}"])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _mark(case: CaseResult | None) -> str:
    if case is None:
        return ""  # the family takes no such items
    if case.not_applicable is not None:
        return "n/a"
    return "right" if case.right else "**wrong**"
