"""`python -m compat.parity.steps FAMILY TOKENS [--compiled [--encoders]] [--case CASE,...] [--blocks SIZE] --json FILE`.

Answers with steps of at most TOKENS tokens, so that items are cut by chunked prefill, eagerly or by torch.compile. Takes a
family; gives for each case, in the order asked, whether its answers are those of HF `generate`, whether a step ended inside
an item, and how many tokens the prefix cache had; and how many modules of its encoders are compiled. Not for full steps of all
families (`compat.parity`).
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compat.parity import environment

if "--compiled" in sys.argv:
    os.environ["TORCHDYNAMO_DISABLE"] = "0"
environment.prepare()

from compat.parity import engine  # noqa: E402  (after the environment)
from compat.parity.cases import Case  # noqa: E402
from compat.parity.media import ALL_CASE_NAMES, all_cases  # noqa: E402
from compat.parity.reference import reference  # noqa: E402
from compat.zoo import spec  # noqa: E402
from hf_backend.check.compare import Answer, EngineAnswer, compare  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask and write what came of it; exit status 0 whatever the answers are."""
    parser = argparse.ArgumentParser(prog="python -m compat.parity.steps", description=__doc__)
    parser.add_argument("family")
    parser.add_argument("tokens", type=int, help="most tokens of a step")
    parser.add_argument("--compiled", action="store_true", help="by torch.compile; eagerly if not given")
    parser.add_argument("--encoders", action="store_true", help="compile encoders, too (vLLM's compile_mm_encoder)")
    parser.add_argument("--case", default=",".join(ALL_CASE_NAMES), help="comma-separated names, asked in this order")
    parser.add_argument("--blocks", type=int, default=32, help="block size of the prefix cache (default: 32)")
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args(arguments)
    known = {case.name: case for case in all_cases(spec(options.family))}
    cases = [known[name] for name in options.case.split(",") if name in known]
    # transformers first: vLLM decorates its classes in this process.
    expected = reference(options.family, cases)
    run = engine.run(
        options.family,
        cases,
        engine.OURS,
        enforce_eager=not options.compiled,
        **({"compilation_config": {"compile_mm_encoder": True}} if options.encoders else {}),
        max_num_batched_tokens=options.tokens,
        block_size=options.blocks,
    )
    found = {case.name: _found(case, run.rounds[case.name], expected, options.tokens) for case in cases}
    told = {"model_class": run.model_class, "compiled_modules": run.compiled_modules, "cases": found}
    options.json.write_text(json.dumps(told))
    return 0


def _found(
    case: Case, rounds: Sequence[engine.Round], expected: Any, step_tokens: int
) -> list[dict[str, str | float | bool | None]]:
    """One record an answer."""
    records: list[dict[str, str | float | bool | None]] = []
    for requests, answered in zip(case.rounds, rounds, strict=True):
        for request, answer in zip(requests, answered.answers, strict=True):
            reference_answer = expected[request]
            if not isinstance(reference_answer, Answer):
                continue
            verdict = compare(reference_answer, answer)
            records.append(
                {
                    "wrong": verdict.wrong,
                    "difference": verdict.difference,
                    "cut": len(requests) == 1 and _cut(answer, step_tokens),
                    "cached_tokens": answer.cached_tokens,
                }
            )
    return records


def _cut(answer: EngineAnswer, step_tokens: int) -> bool:
    """Whether a step of a lone request ended between two equal tokens: only a run of placeholders has those."""
    ids = answer.prompt_ids[answer.cached_tokens :]
    return any(ids[end - 1] == ids[end] for end in range(step_tokens, len(ids), step_tokens))


if __name__ == "__main__":
    sys.exit(main())
