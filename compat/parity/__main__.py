"""`python -m compat.parity [FAMILY ...] [--peer ours,in-tree,native] [--case CASE,...] [--json FILE] [--markdown]`.

Takes names of families (all if none is given); prints a line for each family and peer as it ends, the first difference
of every wrong case, and on request a table. Exit status 1 if a case was wrong or an engine failed: one of ours if ours
was asked, since what the peers beside it get wrong is no fault of ours; any otherwise. For the run itself see
`compat.parity.plan`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from compat.parity import environment

environment.prepare()

from compat.parity.engine import OURS, PEERS  # noqa: E402  (after the environment)
from compat.parity.media import ALL_CASE_NAMES  # noqa: E402
from compat.parity.plan import run_all  # noqa: E402
from compat.parity.report import Result, markdown  # noqa: E402
from compat.zoo import families  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m compat.parity", description=__doc__)
    parser.add_argument("family", nargs="*", help="families to run; all if none is given")
    parser.add_argument("--peer", default="ours", help=f"comma-separated, of {', '.join(PEERS)} (default: ours)")
    parser.add_argument("--case", help="comma-separated names of cases; all if not given")
    parser.add_argument("--jobs", type=int, default=1, help="engines at once (default: 1)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--markdown", action="store_true", help="print a table at the end")
    options = parser.parse_args(arguments)

    peers = options.peer.split(",")
    names = options.case.split(",") if options.case else ALL_CASE_NAMES
    for what, asked, known in (
        ("families", options.family, families()),
        ("peers", peers, PEERS),
        ("cases", names, ALL_CASE_NAMES),
    ):
        if unknown := sorted(set(asked) - set(known)):
            parser.error(f"found unknown {what} {', '.join(unknown)}; expected some of {', '.join(known)}")

    results = []
    for result in run_all(options.family or families(), peers, names, jobs=options.jobs, say=_say):
        results.append(result)
        _say(_line(result))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps([result.as_json() for result in results], indent=1))
    if options.markdown:
        print(markdown(results, names))
    for peer in peers:
        of_peer = [result for result in results if result.peer == peer]
        _say(f"{peer}: {sum(result.right for result in of_peer)} of {len(of_peer)} families right")
    counted = [result for result in results if result.peer == OURS] or results
    return 0 if all(result.right for result in counted) else 1


def _say(text: str) -> None:
    print(text, flush=True)


def _line(result: Result) -> str:
    head = f"{result.family:18} {result.peer:8} {result.seconds:6.1f} s  "
    if result.error is not None:
        return f"{head}failed: {result.error}\n    output: {result.log}"
    judged = {name: case for name, case in result.cases.items() if case.not_applicable is None}
    right = sum(case.right for case in judged.values())
    difference = "nothing compared" if result.difference is None else f"largest difference {result.difference:.1e}"
    lines = [f"{head}{right}/{len(judged)} cases right, {difference}  ({result.model_class})"]
    lines += [f"    {name}: {case.wrong}" for name, case in judged.items() if not case.right]
    lines += [
        f"    {name}: not applicable: {case.not_applicable}"
        for name, case in result.cases.items()
        if case.not_applicable is not None
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
