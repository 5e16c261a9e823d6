"""Runs one pair: `compat.parity` in a process of its own, with the pair's folders first on its path.

Takes a pair and families; gives a `CellResult`. Not for which pairs (`compat.matrix.plan`).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from compat.matrix import trees
from compat.matrix.records import CellResult, FamilyResult, Pair

ROOT = Path(__file__).parents[2]
FAMILY_LIMIT_S = 300
"""How long a family may take; the whole run is ended after as many times this as there are families."""


def run_cell(
    pair: Pair,
    families: Sequence[str],
    *,
    sources: str,
    package: Path | None = None,
    jobs: int = 1,
    say: Callable[[str], None] = print,
) -> CellResult:
    """Run `families` on `pair`, with this tree's hf_backend or the one in the folder `package`.

    What goes wrong is in the result, never raised.
    """
    started = time.perf_counter()
    try:
        folders = trees.folders(pair, say)
        pip = trees.pip_refuses(pair)
    except trees.InstallError as error:
        return CellResult(pair, (), (), time.perf_counter() - started, sources, problem=str(error))
    log = trees.cache_folder() / "logs" / f"vllm-{pair.vllm}-transformers-{pair.transformers}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="matrix-") as folder, log.open("wb") as output:
        answer = Path(folder, "parity.json")
        command = [sys.executable, "-P", "-m", "compat.parity", *families, "--jobs", str(jobs), "--json", str(answer)]
        problem = None
        try:
            # parity ends with status 1 where an answer is wrong; its JSON says which.
            status = subprocess.run(
                command,
                cwd=ROOT,
                env=environment(pair, folders, package),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=FAMILY_LIMIT_S * len(families),
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            problem = f"no end after {error.timeout:.0f} s; its output is in {log}"
        if problem is None and not answer.exists():
            lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            problem = f"ended with status {status}: {lines[-1][:300] if lines else 'it said nothing'}"
        results = [] if problem else json.loads(answer.read_text())
    found = tuple(FamilyResult.of_parity(result) for result in results)
    return CellResult(pair, pip, found, round(time.perf_counter() - started, 1), sources, problem)


def environment(pair: Pair, folders: Sequence[Path], package: Path | None = None) -> dict[str, str]:
    """The environment of a pair's process: `package` before this tree, which holds an hf_backend as well.

    vLLM keeps what it learned of a model class by a hash of the class's file, whatever its own version: a cache folder each.
    """
    path = [
        *map(str, [package] if package else []),
        str(ROOT),
        *map(str, folders),
        *filter(None, [os.environ.get("PYTHONPATH")]),
    ]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "VLLM_CACHE_ROOT": str(trees.cache_folder() / f"vllm-cache-{pair.vllm}"),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
    }
