"""Spans stay whole where prefill is chunked, in batches of decode and prefill rows (C12)."""

from pathlib import Path

import pytest
from children import run

pytestmark = [pytest.mark.engine, pytest.mark.language, pytest.mark.timeout(300)]

ENGINE = """
import sys

from compat.parity.cases import cases
from compat.parity.reference import reference
from compat.zoo import spec

if __name__ == "__main__":
    family, budget = sys.argv[1], int(sys.argv[2])
    asked = [case for case in cases(spec(family)) if case.name in ("several_sizes", "together")]
    expected = reference(family, asked)  # Before vLLM is imported.
    from compat.parity.engine import run

    answers = run(family, asked, "ours", max_num_batched_tokens=budget).rounds
    worst, longest = 0.0, 0
    for case in asked:
        for requests, got in zip(case.rounds, answers[case.name], strict=True):
            for request, answer in zip(requests, got.answers, strict=True):
                want = expected[request]
                assert answer.prompt_ids == want.prompt_ids
                longest = max(longest, len(answer.prompt_ids))
                for step, token in enumerate(answer.tokens):
                    worst = max(worst, abs(answer.logprobs[step][token] - float(want.logprobs[step][token])))
                    if token != want.tokens[step]:
                        break
    assert longest > budget, "nothing was chunked"
    assert worst < 1e-3, worst
"""


@pytest.mark.parametrize(("family", "budget"), [("gemma3", 32)])
def test_c12_chunked_prefill_never_cuts_a_span(family: str, budget: int, tmp_path: Path) -> None:
    """A step has room for a part of most prompts only; six requests share the steps."""
    done = run(tmp_path, ENGINE, family, budget)
    assert done.returncode == 0, done.stderr[-2000:]
