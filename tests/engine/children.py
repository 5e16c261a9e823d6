"""An engine in a process of its own, for one test.

Takes a script's text and its arguments; gives what the script printed as JSON in a line that starts with `FOUND `. A child, because
vLLM decorates transformers' classes when it is imported: a reference in the same process would be another model.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

FOUND = "FOUND "

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    # The engine in the child itself: `apply_model` then needs no function sent to another process.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # `compat` and this module aren't part of the package.
    "PYTHONPATH": os.pathsep.join(
        filter(None, [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ),
}

Answer = tuple[list[int], list[float]]
"""Tokens, and the log-probability of each."""


def run(directory: Path, script: str, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `script`, written into `directory`, whatever comes of it; at most 500 seconds."""
    file = directory / "engine.py"
    file.write_text(textwrap.dedent(script))
    command = [sys.executable, str(file), *map(str, arguments)]
    environment = {**os.environ, **ENVIRONMENT, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)


def found(directory: Path, script: str, *arguments: object, **environment: str) -> Any:
    """What `script` found; the test fails with the ends of both streams where it printed nothing."""
    done = run(directory, script, *arguments, **environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith(FOUND)]
    assert lines, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(lines[-1].removeprefix(FOUND))


def prompts(placeholder: str) -> list[dict[str, Any]]:
    """For a script: one picture, two of other sizes, none."""
    from hf_backend.probe.samples import picture

    return [
        {"prompt": f"{placeholder} what is it?", "multi_modal_data": {"image": [picture(112, 84, seed=1)]}},
        {
            "prompt": f"a {placeholder} and {placeholder}",
            "multi_modal_data": {"image": [picture(50, 90), picture(90, 50)]},
        },
        {"prompt": "no picture at all"},
    ]


def answers(outputs: Iterable[Any]) -> list[Answer]:
    """For a script: vLLM's request outputs, asked for with `logprobs`."""
    completions = [output.outputs[0] for output in outputs]
    return [
        (list(one.token_ids), [step[token].logprob for token, step in zip(one.token_ids, one.logprobs, strict=True)])
        for one in completions
    ]


def same(one: Answer, other: Answer) -> bool:
    """Whether two answers are equal: the same tokens, log-probabilities within 1e-3."""
    return one[0] == other[0] and max(abs(a - b) for a, b in zip(one[1], other[1], strict=True)) < 1e-3
