"""`hf-backend check MODEL`: see before you serve.

Takes a path or a name on the hub; prints a table or JSON, and gives the exit status: 0 served (and right, with `--parity`), 1
something is not, 2 could not tell. Each step runs in a process of its own. Not for measuring (`hf_backend.check`).
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hf_backend.check import cases, verdict
from hf_backend.cli.facts import Unanswered, ask

TIMEOUT_S = 900.0
SHORTEST, MARGIN = 4096, 512
"""Length of the engine's prompts in tokens, and what goes beyond the longest request."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check` to the command."""
    parser = subparsers.add_parser(
        "check",
        help="say whether and how a model would be served, without its weights",
        description="Measures the model's processor, makes a tiny random model of the same kind and runs it in vLLM. Exit"
        " status: 0 served (and right, with --parity), 1 something is not, 2 could not tell.",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="a folder, or a name on the hub (only small files are downloaded)"
    )
    parser.add_argument("--parity", action="store_true", help="compare answers with those of transformers' generate")
    parser.add_argument(
        "--compile", action="store_true", help="compile encoders as vLLM's compile_mm_encoder has them (a minute more)"
    )
    parser.add_argument("--weights", action="store_true", help="use the real weights in place of a tiny random model")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that the model brings")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--verbose", action="store_true", help="print whole errors")
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, metavar="S", help="seconds to wait for each step (%(default).0f)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, judge, print."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hf-backend-check-") as folder:
        steps = take(arguments, folder)
    found = verdict.nos(steps)
    status = verdict.exit_status(found)
    seconds = time.perf_counter() - started
    if arguments.json:
        said: dict[str, Any] = {
            "status": ("served", "problem", "unknown")[status],
            "model": arguments.model,
            "seconds": round(seconds, 1),
        }
        print(json.dumps({**said, "nos": [asdict(no) for no in found], **asdict(steps)}, indent=2))
        return status
    table = list(verdict.rows(arguments.model, steps))
    width = max(len(name) for name, _ in table)
    for name, text in table:
        print(f"{name:<{width}}  {text}".rstrip())
    print()
    for line in verdict.conclusion(found, parity=arguments.parity):
        print(line)
    if arguments.verbose:
        for step in (steps.folder, steps.processor, steps.reference, steps.engine):
            print((step or {}).get("traceback", ""), end="")
    print(f"Took {seconds:.1f} s.")
    return status


def take(arguments: argparse.Namespace, folder: str) -> verdict.Steps:
    """Take the steps one after the other, until one fails that the next needs."""
    trust = {"trust_remote_code": arguments.trust_remote_code}
    timeout = arguments.timeout
    found = _step(
        f"finding {arguments.model}", timeout, "folder", {"model": arguments.model, "weights": arguments.weights}
    )
    if "error" in found:
        return verdict.Steps(folder=found)
    source = found["folder"]
    processor = _step("measuring its processor in vLLM", timeout, "processor", {"path": source, **trust})
    if "error" in processor:
        return verdict.Steps(found, processor)
    placeholders = {name: one["placeholder"] for name, one in processor["modalities"].items()}
    requests = [asdict(request) for request in cases.requests(placeholders)]
    rate = processor["sampling_rate"]
    what = "running the real model" if arguments.weights else "making a tiny model of its kind"
    reference = _step(
        f"{what}{' and asking it' if arguments.parity else ''} in transformers",
        timeout,
        "reference",
        {
            "source": source,
            "target": folder,
            "requests": requests,
            "rate": rate,
            "nested": [name for name, one in processor["modalities"].items() if one["nested"]],
            "weights": arguments.weights,
            "answers": arguments.parity,
            **trust,
        },
    )
    if "error" in reference:
        return verdict.Steps(found, processor, reference)
    largest = {name: one["largest"] for name, one in processor["modalities"].items()}
    needed = max([SHORTEST, reference["longest"] + MARGIN, *(one["tokens"] + MARGIN for one in largest.values())])
    engine = _step(
        "starting a vLLM engine on it",
        timeout,
        "engine",
        {
            "folder": source if arguments.weights else folder,
            "modalities": list(placeholders),
            "requests": requests,
            "rate": rate,
            "max_model_len": min(needed, processor["max_model_len"]),
            "largest": {name: one["size"] for name, one in largest.items()},
            "refused": list(reference["refused"]),
            "answers": f"{folder}/answers.npz" if arguments.parity else None,
            "compiles": arguments.compile,
            **trust,
        },
    )
    return verdict.Steps(found, processor, reference, engine)


def _step(what: str, timeout_s: float, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """One step's answer; an error as its answer where the process ended without one."""
    print(f"{what} ...", file=sys.stderr, flush=True)
    started = time.perf_counter()

    def waiting(gone: float) -> None:
        print(f"  still at it after {gone:.0f} s", file=sys.stderr, flush=True)

    try:
        answer: dict[str, Any] = ask("check", [name, json.dumps(options)], timeout_s, waiting)
    except Unanswered as reason:
        answer = {
            "error": str(reason),
            "unanswered": True,
            "do": "Run `hf-backend doctor`; give it more time with --timeout, or a machine with more memory.",
        }
    print(f"  {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    return answer
