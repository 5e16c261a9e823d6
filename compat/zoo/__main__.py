"""`python -m compat.zoo [FAMILY ...] [--out DIR] [--list] [--json]`: build checkpoints and say how long each took.

Takes names of families (all if none is given); gives a line a family, exit status 1 if one failed.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from compat.zoo.build import build
from compat.zoo.registry import families
from compat.zoo.store import checkpoint
from compat.zoo.untyped import transformers


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m compat.zoo", description=__doc__)
    parser.add_argument("family", nargs="*", help="families to build; all if none is given")
    parser.add_argument("--out", type=Path, help="build anew below this folder instead of the cache")
    parser.add_argument("--list", action="store_true", help="only print the names of the families")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    options = parser.parse_args(arguments)
    if options.list:
        print(json.dumps(list(families())) if options.json else "\n".join(families()))
        return 0
    if unknown := sorted(set(options.family) - set(families())):
        parser.error(f"found unknown families {', '.join(unknown)}; expected some of {', '.join(families())}")

    transformers.utils.logging.disable_progress_bar()
    chosen = tuple(options.family) or families()
    results = []
    for number, family in enumerate(chosen, start=1):
        start = time.perf_counter()
        result: dict[str, object] = {"family": family}
        try:
            folder = build(family, options.out / family) if options.out else checkpoint(family)
        except Exception as error:  # noqa: BLE001  (one family that fails must not hide the others)
            traceback.print_exc()
            result["error"] = f"{type(error).__name__}: {error}"
        else:
            size = sum(path.stat().st_size for path in folder.iterdir())
            result |= {"folder": str(folder), "bytes": size}
        result["seconds"] = round(time.perf_counter() - start, 2)
        results.append(result)
        if not options.json:
            said = result.get("error") or f"{result['bytes'] / 1e6:5.2f} MB  {result['folder']}"  # type: ignore[operator]
            print(f"[{number:2}/{len(chosen)}] {family:20} {result['seconds']:6.2f} s  {said}", flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return 1 if any("error" in result for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
