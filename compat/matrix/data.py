"""The two axes of the matrix, the families every pair is asked, and what is expected of a pair.

Data. A new release of vLLM or transformers is one line here; a pair that is known not to be right is one line with its
reason. Not for results (`compat/matrix/results.json`).
"""

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compat.matrix.records import Outcome, Pair

VLLM = (
    "0.29.0",
    "0.30.0",
    "0.31.0",
    "0.32.0",
)
"""Oldest first; each has a CPU build."""

TRANSFORMERS = (
    "5.10.4",
    "5.12.1",
    "5.13.1",
    "5.14.1",
    "5.15.1",
    "5.16.1",
    "5.17.0",
    "5.18.0",
    "5.19.0",
    "5.22.2",
    "5.24.0",
)
"""Oldest first; the last patch of each minor release that differs from its neighbours for a multimodal model."""

CORE = ("qwen2_vl", "idefics3", "llava", "qwen2_5_vl", "audioflamingo3")
"""Packed pictures and videos with M-RoPE; tiles with text around them; a tower of fixed size; videos whose positions count
seconds; clips."""

COLUMN = Pair("0.32.0", "5.19.0")
"""The pair that all families of the zoo are run on."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Pairs that are known not to be right."""

    vllm: str
    """A version specifier."""
    transformers: str
    """A version specifier."""
    outcome: Outcome
    reason: str

    def holds_for(self, pair: Pair) -> bool:
        """Whether it speaks of `pair`."""
        return Version(pair.vllm) in SpecifierSet(self.vllm) and Version(pair.transformers) in SpecifierSet(
            self.transformers
        )


EXPECTATIONS: tuple[Expectation, ...] = ()
"""The first that holds counts; a pair that none speaks of is expected to be right."""


def expected(pair: Pair) -> tuple[Outcome, str]:
    """What is expected of `pair`, and the reason where that isn't right answers."""
    for one in EXPECTATIONS:
        if one.holds_for(pair):
            return one.outcome, one.reason
    return Outcome.RIGHT, ""


def grid() -> tuple[Pair, ...]:
    """Every pair, newest first: what most people run is known soonest."""
    return tuple(Pair(vllm, transformers) for vllm in reversed(VLLM) for transformers in reversed(TRANSFORMERS))


def corners() -> tuple[Pair, ...]:
    """The pairs at the ends of both axes, and the one that everything is developed with: what CI runs."""
    ends = [
        Pair(vllm, transformers) for vllm in (VLLM[-1], VLLM[0]) for transformers in (TRANSFORMERS[-1], TRANSFORMERS[0])
    ]
    return tuple(dict.fromkeys([COLUMN, *ends]))
