"""`hf-backend demo`: serve the tiny model that comes with the package and let it read.

Takes command-line options; gives an exit status: 0 if every answer through the server is the one that Hugging Face's
`generate` gives, 1 if not or if the server fails. Not for other models.
"""

import argparse
import importlib.util
import json
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from hf_backend.demo.digits import Reading

SINGLES, SEQUENCES = 360, 100
"""All pictures that are held out, and as many sequences as take about as long."""

SHOWN_SINGLES, SHOWN_SEQUENCES = 3, 2
NEEDED = {
    "sklearn": "scikit-learn",
    "openai": "openai",
    "PIL": "pillow",
    "torch": "torch",
    "transformers": "transformers",
    "vllm": "vllm",
}
"""Modules the demo imports, and what to install for each."""

PLUGIN_LINE = "serves --model-impl transformers"
"""Part of the line our plug-in logs in each process of a server."""

T = TypeVar("T")


def add_parser(subparsers: Any) -> None:
    """Add `demo` to the subparsers of `hf-backend`."""
    parser = subparsers.add_parser(
        "demo",
        help="serve a tiny model that reads handwritten digits, ask it, compare with HF generate",
        description="Starts the real `vllm serve --model-impl transformers` on 127.0.0.1 with the tiny model of this "
        "package, asks it to read handwritten digits through the openai client, and compares every answer with Hugging "
        "Face's generate. Nothing is downloaded.",
    )
    parser.add_argument(
        "--singles",
        type=int,
        default=SINGLES,
        metavar="N",
        help=f"pictures read one by one, 1 to 360 (default {SINGLES})",
    )
    parser.add_argument(
        "--sequences",
        type=int,
        default=SEQUENCES,
        metavar="N",
        help=f"sequences of three pictures (default {SEQUENCES})",
    )
    parser.add_argument("--port", type=int, default=None, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout; progress goes to stderr")
    parser.add_argument(
        "--save", type=Path, default=None, metavar="FILE", help="write a PNG with all pictures and answers"
    )
    parser.add_argument(
        "--checkpoint", type=Path, default=None, metavar="DIR", help="another checkpoint of the demo model"
    )
    parser.add_argument("--keep-serving", action="store_true", help="leave the server up afterwards, until Ctrl-C")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo; its exit status."""
    say = _sayer(sys.stderr if args.json else sys.stdout)
    missing = sorted({package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None})
    if missing:
        say(f"hf-backend demo: found no {', '.join(missing)}; expected them beside hf_backend.")
        say(f"Install them: {sys.executable} -m pip install {' '.join(missing)} (`hf-backend doctor` says more).")
        return 1
    from hf_backend.demo import digits, reference, server

    checkpoint = args.checkpoint or reference.CHECKPOINT
    if not (checkpoint / "config.json").is_file():
        say(f"hf-backend demo: found no config.json in {checkpoint}; expected a checkpoint of the demo model.")
        say("Make it: python -m hf_backend.demo.train (minutes).")
        return 2

    try:
        readings = {
            "one picture": digits.singles(args.singles),
            "three pictures in order": digits.sequences(args.sequences),
        }
    except ValueError as error:
        say(f"hf-backend demo: {error}")
        return 2
    # Ended from outside, the demo still takes its server along: the exception runs the `finally` that stops it.
    for kind in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(kind, lambda number, frame: sys.exit(128 + number))
    try:
        return _read(args, checkpoint, readings, say)
    except server.ServerError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("stopped.")
        return 130


def _read(
    args: argparse.Namespace, checkpoint: Path, readings: "dict[str, list[Reading]]", say: Callable[[str], None]
) -> int:
    import transformers

    from hf_backend.demo import client, reference, report, server

    transformers.utils.logging.disable_progress_bar()  # a bar for 58 tiny tensors says nothing
    seconds: dict[str, float] = {}

    def timed(step: str, work: Callable[[], T]) -> T:
        say(f"{step} ...")
        began = time.monotonic()
        result = work()
        seconds[step] = round(time.monotonic() - began, 1)
        say(f"  {seconds[step]:.1f} s")
        return result

    total = sum(map(len, readings.values()))
    # Before the server, so that the two don't fight for the processor's cores.
    hf = timed("loading the model into Hugging Face transformers", lambda: reference.Reference(checkpoint))
    expected = timed(
        f"reading {total} prompts with HF generate",
        lambda: {name: hf.read_all(own, _progress(say, name)) for name, own in readings.items()},
    )
    serving = server.Server(checkpoint, port=args.port, say=say)
    try:
        timed("starting vllm serve", serving.start)
        plugin_lines = [line for line in serving.log_text().splitlines() if PLUGIN_LINE in line]
        say(f"  healthy at {serving.url}")
        for line in plugin_lines or ["NOT FOUND: the plug-in's line isn't in the log; `hf-backend doctor` says why."]:
            say(f"  {line.strip()}")
        with client.Client(serving.url) as asked:
            answers = timed(
                f"reading {total} prompts through the server, {client.AT_ONCE} at a time",
                lambda: {name: asked.read_all(own, _progress(say, name)) for name, own in readings.items()},
            )
        results = [report.Result(name, own, answers[name], expected[name]) for name, own in readings.items()]
        status = show(args, results, plugin_lines, seconds, say)
        if args.keep_serving:
            say(f"serving at {serving.url}/v1 as model {server.MODEL_NAME!r}; Ctrl-C stops it.")
            serving.wait()
    finally:
        say("stopping the server ...")
        serving.stop()
    return status


def show(
    args: argparse.Namespace,
    results: Sequence[Any],
    plugin_lines: Sequence[str],
    seconds: dict[str, float],
    say: Callable[[str], None],
) -> int:
    """Print pictures, table and verdict; the exit status."""
    from hf_backend.demo import report

    say("")
    for result, count in zip(results, (SHOWN_SINGLES, SHOWN_SEQUENCES), strict=True):
        for reading, answer in list(zip(result.readings, result.served, strict=True))[:count]:
            for line in report.shown(reading, answer):
                say(line)
    for line in report.table(results):
        say(line)
    differing = report.differences(results)
    agree = not differing
    say("" if agree else "\n".join(["", "server and HF generate differ:", *differing]))
    verdict = (
        "every answer is the one HF generate gives" if agree else f"{len(differing)} answers differ from HF generate"
    )
    ours = bool(plugin_lines)
    served_by = "hf_backend" if ours else "vLLM's own backend, NOT by hf_backend"
    say(f"{'OK' if agree and ours else 'FAILED'}: {verdict}; served by {served_by}.")
    if args.save:
        report.save_sheet(results, args.save)
        say(f"wrote {args.save}")
    if args.json:
        print(
            json.dumps(
                {
                    "ok": agree and ours,
                    "plugin_lines": list(plugin_lines),
                    "results": [result.as_dict() for result in results],
                    "seconds": seconds,
                },
                indent=2,
            )
        )
    return 0 if agree and ours else 1


def _sayer(stream: Any) -> Callable[[str], None]:
    return lambda line: print(line, file=stream, flush=True)


def _progress(say: Callable[[str], None], name: str) -> Callable[[int, int], None]:
    """Says every quarter how far a list of readings is."""

    def progress(done: int, total: int) -> None:
        if total >= 4 and done % (total // 4) == 0:
            say(f"  {name}: {done} of {total}")

    return progress
