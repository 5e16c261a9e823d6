"""One parity run for all engine tests of a session.

Takes the families that the collected tests ask for; gives their results. Not for the comparison itself (`compat.parity`).
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
JOBS = 2


@pytest.fixture(scope="session")
def parity(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The result of peer "ours" for each family that a collected test names in its parameter `family`.

    The cases are those in `CASES` of the tests' modules. One child process imports vLLM once and forks an engine a family,
    so eleven families take about a minute and a half on two cores, and a family that two modules name has one engine. Its
    progress goes to the terminal: the first test waits for all of them.
    """
    asking = [
        item
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "parity" in item.fixturenames
    ]
    families = sorted({item.callspec.params["family"] for item in asking})
    cases = sorted({case for item in asking for case in item.module.CASES})
    results = tmp_path_factory.mktemp("parity") / "results.json"
    command = [sys.executable, "-m", "compat.parity", *families, "--case", ",".join(cases)]
    command += ["--jobs", str(JOBS), "--json", str(results)]
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n$ {' '.join(command[1:])}", flush=True)
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if not results.exists():
        pytest.fail(f"compat.parity: found no results (exit status {status}); expected them in {results}. See above.")
    return {result["family"]: result for result in json.loads(results.read_text())}
