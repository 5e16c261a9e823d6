"""Whether an engine's answer is transformers' answer.

Takes both; gives a `Verdict` with the largest difference and, where they differ, where first. Not for running either. Also
what `compat.parity` compares by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TIE = 1e-3
"""Two tokens whose log-probabilities are nearer than this may come in either order."""
TOLERANCE = 2e-3
"""Largest difference of a log-probability; right runs in float32 are off by 1e-5 to 2e-4."""

APART = 1e-5
"""C9: largest difference of an embedding alone and beside others, relative to the largest embedding, in float32."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What transformers makes of one request."""

    prompt_ids: tuple[int, ...]
    """The expanded prompt."""
    tokens: tuple[int, ...]
    logprobs: "npt.NDArray[np.float32]"
    """[tokens, vocabulary]: log-probabilities before each token."""


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """What an engine says to one request."""

    prompt_ids: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[Mapping[int, float], ...]
    """For each token the log-probabilities that the engine tells: the five likeliest and the chosen one."""
    cached_tokens: int = 0
    """Tokens of the prompt that the prefix cache had."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one request or, joined, for several."""

    difference: float
    """Largest difference of a log-probability among the compared ones."""
    compared: int
    """Tokens compared."""
    wrong: str | None = None
    """The first difference, in words; None if there is none."""


def compare(expected: Answer, found: EngineAnswer, *, tolerance: float = TOLERANCE) -> Verdict:
    """Compare prompt, tokens and log-probabilities, up to the first tie that went the other way."""
    if expected.prompt_ids != found.prompt_ids:
        return Verdict(float("nan"), 0, _first_prompt_difference(expected.prompt_ids, found.prompt_ids))
    if len(found.tokens) != len(expected.tokens) or len(found.logprobs) != len(found.tokens):
        lengths = f"{len(found.tokens)} tokens with {len(found.logprobs)} log-probabilities"
        return Verdict(float("nan"), 0, f"answer: found {lengths}; expected {len(expected.tokens)}")
    largest = 0.0
    for step, (right, token) in enumerate(zip(expected.tokens, found.tokens, strict=True)):
        row = expected.logprobs[step]
        told = found.logprobs[step]
        # The likeliest tokens of transformers must be among those told: otherwise a wrong one took their place.
        for candidate, value in told.items():
            difference = abs(value - float(row[candidate]))
            if not difference <= tolerance:  # also catches NaN
                return Verdict(
                    max(largest, difference),
                    step,
                    f"token {step}: log-probability of id {candidate} is {value:.4f}; expected {row[candidate]:.4f}",
                )
            largest = max(largest, difference)
        if token != right:
            gap = float(row[right] - row[token])
            if gap >= TIE:
                return Verdict(
                    largest, step, f"token {step}: found id {token}; expected {right}, likelier by {gap:.4f}"
                )
            return Verdict(largest, step + 1)
    return Verdict(largest, len(expected.tokens))


def join(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict for several requests: the largest difference, and the first that is wrong."""
    wrong = next((verdict.wrong for verdict in verdicts if verdict.wrong), None)
    differences = [verdict.difference for verdict in verdicts if verdict.difference == verdict.difference]
    return Verdict(max(differences, default=float("nan")), sum(verdict.compared for verdict in verdicts), wrong)


def _first_prompt_difference(expected: Sequence[int], found: Sequence[int]) -> str:
    lengths = f"found {len(found)} ids; expected {len(expected)}"
    for place, (right, other) in enumerate(zip(expected, found, strict=False)):
        if right != other:
            return f"expanded prompt: {lengths}; first difference at {place}: found {other}, expected {right}"
    return f"expanded prompt: {lengths}; equal as far as the shorter goes"
