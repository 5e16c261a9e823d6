"""`python -m compat.parity.table JSON [JSON ...]`: families x cases with what came of tokens and log-probabilities, as Markdown.

Takes files that `python -m compat.parity --json` wrote; prints a table for each modality, a row for each family and peer. A
later file's row goes before an earlier one's of the same family and peer. Not for running anything.
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compat.parity.cases import CASE_NAMES
from compat.parity.media import CLIP_CASE_NAMES, VIDEO_CASE_NAMES, WOVEN_CASE_NAMES

TABLES: Mapping[str, Sequence[str]] = {
    "Pictures and texts": CASE_NAMES,
    "Videos": VIDEO_CASE_NAMES,
    "Clips": CLIP_CASE_NAMES,
    "Videos with their sound": WOVEN_CASE_NAMES,
}
PROMPT, LOGPROB = "expanded prompt", "log-probability"
"""How `hf_backend.check.compare` begins or words a difference of these kinds."""
MOST = 150
"""Characters of an error."""
PEERS = ("ours", "in-tree", "native")


def cell(case: Mapping[str, Any] | None) -> str:
    """One case: the largest difference of a log-probability where all is right, else what differs first."""
    if case is None:
        return ""
    if case["not_applicable"] is not None:
        return "n/a"
    difference = case["difference"]
    number = "" if difference is None else f" {difference:.0e}"
    if case["right"]:
        return f"right{number}"
    wrong = str(case["wrong"])
    if wrong.startswith(PROMPT):
        return "**prompt**"
    return f"**{'logprobs' if LOGPROB in wrong else 'tokens'}**{number}"


def rows(results: Iterable[Mapping[str, Any]], names: Sequence[str]) -> list[list[str]]:
    """The table's rows, for families that have one of the cases on any peer."""
    results = list(results)
    having = {result["family"] for result in results if any(name in result["cases"] for name in names)}
    found = []
    for result in results:
        if result["family"] not in having:
            continue
        if result["error"] is not None:
            cells = ["doesn't start", *[""] * (len(names) - 1)]
        else:
            cells = [cell(result["cases"].get(name)) for name in names]
        found.append([result["family"], result["peer"], *cells])
    return found


def markdown(results: Iterable[Mapping[str, Any]]) -> str:
    """All tables, and under them why peers didn't start."""
    results = list(results)
    parts = []
    for title, names in TABLES.items():
        head = ["family", "peer", *(name.replace("_", " ") for name in names)]
        lines = [head, ["---"] * len(head), *rows(results, names)]
        if len(lines) > 2:
            parts.append(f"### {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines))
    failed = [
        f"* {one['family']}, {one['peer']}: `{one['error'][:MOST]}`" for one in results if one["error"] is not None
    ]
    if failed:
        parts.append("### What didn't start\n\n" + "\n".join(failed))
    return "\n\n".join(parts)


def merged(files: Sequence[Path]) -> list[dict[str, Any]]:
    """The files' results, one a family and peer, peers of a family together."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for file in files:
        for result in json.loads(file.read_text()):
            found[result["family"], result["peer"]] = result
    order = list(dict.fromkeys(family for family, _ in found))
    return sorted(found.values(), key=lambda one: (order.index(one["family"]), PEERS.index(one["peer"])))


def main() -> None:
    """Print the tables of the files that were named."""
    parser = argparse.ArgumentParser(prog="python -m compat.parity.table", description=__doc__)
    parser.add_argument("json", nargs="+", type=Path)
    print(markdown(merged(parser.parse_args().json)))


if __name__ == "__main__":
    main()
