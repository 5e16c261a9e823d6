"""What the rooms of the matrix hand to each other: pairs, and what came of them.

Frozen records and their JSON. Not for judging a set of results (`compat.matrix.merge`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Outcome(Enum):
    """What came of a pair, worst last."""

    RIGHT = "right"
    """Every family gave the answers of transformers."""
    WRONG = "wrong"
    """Every engine started, and an answer was another."""
    FAILS = "fails"
    """An engine did not start, or ended."""


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """One release of vLLM beside one of transformers."""

    vllm: str
    transformers: str

    def __str__(self) -> str:
        return f"vLLM {self.vllm} x transformers {self.transformers}"


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """One family on one pair."""

    family: str
    right: int
    """Cases answered as transformers does."""
    judged: int
    """Cases that could be compared."""
    difference: float | None
    """Largest difference of a log-probability."""
    problem: str | None
    """What is wrong first, or why the engine did not start."""
    seconds: float

    @property
    def outcome(self) -> Outcome:
        """Right only if something was compared."""
        if not self.judged:
            return Outcome.FAILS
        return Outcome.RIGHT if self.right == self.judged and self.problem is None else Outcome.WRONG

    @classmethod
    def of_parity(cls, result: Mapping[str, Any]) -> "FamilyResult":
        """From one entry of the JSON that `compat.parity` writes."""
        judged = {name: case for name, case in result["cases"].items() if case["not_applicable"] is None}
        wrong = [f"{name}: {case['wrong']}" for name, case in judged.items() if not case["right"]]
        problem = result["error"] or next(iter(wrong), None)
        if problem is None and not str(result["model_class"]).startswith("hf_backend."):
            problem = f"served by {result['model_class']}, not by hf_backend"
        return cls(
            family=result["family"],
            right=len(judged) - len(wrong),
            judged=len(judged),
            difference=result["difference"],
            problem=problem,
            seconds=round(result["seconds"], 1),
        )


@dataclass(frozen=True, slots=True)
class CellResult:
    """What came of one pair."""

    pair: Pair
    pip: tuple[str, ...]
    """Why pip would not install the two beside each other; empty where it would."""
    families: tuple[FamilyResult, ...]
    seconds: float
    sources: str
    """Which sources of this repository were run, as `compat.matrix.plan.sources_key` gives it."""
    problem: str | None = None
    """Why there are no families: the run itself ended."""

    @property
    def outcome(self) -> Outcome:
        """The worst of its families'."""
        order = list(Outcome)
        found = [family.outcome for family in self.families]
        return max(found, key=order.index) if found and self.problem is None else Outcome.FAILS

    def as_json(self) -> dict[str, Any]:
        """JSON types; `of_json` reads them."""
        return {"outcome": self.outcome.value, **asdict(self)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> "CellResult":
        """The result that `as_json` wrote."""
        families: Sequence[Mapping[str, Any]] = data["families"]
        return cls(
            pair=Pair(**data["pair"]),
            pip=tuple(data["pip"]),
            families=tuple(FamilyResult(**family) for family in families),
            seconds=data["seconds"],
            sources=data["sources"],
            problem=data["problem"],
        )
