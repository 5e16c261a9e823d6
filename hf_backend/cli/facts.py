"""What is installed and what serves, as frozen records.

Takes the environment this process runs in; gives `Facts`. What importing would change or break is asked of child
processes (`hf_backend.cli.questions`). Not for saying what is wrong with it: that is `hf_backend.cli.findings`.
"""

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import hf_backend
from hf_backend import versions
from hf_backend.plugin import DISABLE_VARIABLE

ENTRY_POINT_GROUP = "vllm.general_plugins"
LIBRARIES = ("torch", "torchvision", "torchaudio")
"""Those whose builds have to fit each other; video and most image processors need the second."""
QUESTIONS = Path(__file__).parent / "questions"
TIMEOUT_S = 180.0
"""Importing vLLM takes 6 to 10 s warm, far longer from a cold disk."""

HEARTBEAT_S = 15.0
"""How often a long question says that it is still at work."""


@dataclass(frozen=True, slots=True)
class Library:
    """One library: its version, and whether it imports."""

    version: str | None
    state: str
    """"imports", "absent", "fails" or "unknown"."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class VllmRequirement:
    """What the installed vLLM's own metadata say of transformers."""

    distribution: str
    version: str
    transformers: str
    """A version specifier."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What vLLM answered in a process of its own."""

    platform: str
    device: str
    served: Mapping[str, str | None]
    """Architecture to the module that holds the class vLLM would load; None if it knows no such name."""
    plugin_error: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything `doctor` knows. Versions are None where a distribution is not installed."""

    python: str
    executable: str
    machine: str
    nvidia: bool
    """Whether an NVIDIA driver is on this machine."""
    hf_backend: str
    package_folder: str
    checkout: str | None
    """The source tree the package is run from, if it is one."""
    vllm: Mapping[str, str]
    """Distribution to version, of those that are installed and hold, or stand in for, the import package `vllm`."""
    transformers: str | None
    vllm_requires: VllmRequirement | None
    libraries: Mapping[str, Library]
    entry_points: tuple[str, ...]
    """Names under which our plug-in is installed."""
    vllm_plugins: str | None
    """The value of VLLM_PLUGINS."""
    disabled_by: str | None
    """The value of HF_BACKEND_DISABLE."""
    strategy: str
    serving: Serving | None
    vllm_error: str | None = None
    """What kept vLLM from importing."""
    unanswered: tuple[str, ...] = field(default=())
    """Questions a child process did not answer, and why."""


class Unanswered(Exception):
    """A child process crashed or took too long."""


def ask(
    question: str,
    arguments: Sequence[str],
    timeout_s: float = TIMEOUT_S,
    waiting: Callable[[float], None] | None = None,
) -> Any:
    """Run a script of `hf_backend.cli.questions` and give its answer. Raises `Unanswered`.

    The child is started without its script's folder on its path (`-P`), so it finds what `vllm serve` would find.
    `waiting` is told the seconds gone every `HEARTBEAT_S`.
    """
    with tempfile.TemporaryDirectory(prefix="hf-backend-doctor-") as folder:
        answer, log = Path(folder, "answer.json"), Path(folder, "log.txt")
        with log.open("wb") as output:
            child = subprocess.Popen(
                [sys.executable, "-P", str(QUESTIONS / f"{question}.py"), str(answer), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            started = time.monotonic()
            try:
                while (status := _wait(child, min(HEARTBEAT_S, timeout_s))) is None:
                    gone = time.monotonic() - started
                    if gone >= timeout_s:
                        raise Unanswered(f"{question}: no answer within {timeout_s:.0f} s")
                    if waiting is not None:
                        waiting(gone)
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        if status != 0 or not answer.is_file():
            lines = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise Unanswered(f"{question}: the process ended with status {status}: {lines[-1][:400]}")
        return json.loads(answer.read_text())


def _wait(child: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """The child's exit status, or None if it still runs after `seconds`."""
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def gather(timeout_s: float = TIMEOUT_S) -> Facts:
    """Look at everything. Takes about ten seconds where vLLM is installed, less than one where it is not."""
    found = {name: str(version) for name in versions.VLLM_DISTRIBUTIONS if (version := versions.installed(name))}
    unanswered: list[str] = []
    libraries = {name: Library(_version(name), "unknown") for name in LIBRARIES}
    serving: Serving | str | None = None
    with ThreadPoolExecutor(max_workers=2) as pool:
        imports = pool.submit(ask, "imports", LIBRARIES, timeout_s)
        asked = pool.submit(_ask_vllm, timeout_s) if found else None
        try:
            libraries = {name: Library(_version(name), **state) for name, state in imports.result().items()}
        except Unanswered as reason:
            unanswered.append(str(reason))
        if asked is not None:
            try:
                serving = asked.result()
            except Unanswered as reason:
                unanswered.append(str(reason))
    package = Path(hf_backend.__file__).parent
    return Facts(
        python=platform.python_version(),
        executable=sys.executable,
        machine=f"{platform.system()} {platform.machine()}",
        nvidia=shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia/version").exists(),
        hf_backend=hf_backend.__version__,
        package_folder=str(package),
        checkout=str(package.parent) if (package.parent / "pyproject.toml").is_file() else None,
        vllm=found,
        transformers=_version("transformers"),
        vllm_requires=_vllm_requirement(found),
        libraries=libraries,
        entry_points=_entry_points(),
        vllm_plugins=os.environ.get("VLLM_PLUGINS"),
        disabled_by=os.environ.get(DISABLE_VARIABLE),
        strategy=versions.preferred_strategy(),
        serving=serving if isinstance(serving, Serving) else None,
        vllm_error=serving if isinstance(serving, str) else None,
        unanswered=tuple(unanswered),
    )


def _ask_vllm(timeout_s: float) -> Serving | str:
    """What vLLM serves, or what kept it from importing."""
    started = time.perf_counter()
    answer = ask("serving", hf_backend.ARCHITECTURES, timeout_s)
    if "error" in answer:
        return str(answer["error"])
    return Serving(
        platform=answer["platform"],
        device=answer["device"],
        served=answer["served"],
        plugin_error=answer["plugin_error"],
        seconds=round(time.perf_counter() - started, 1),
    )


def _version(distribution: str) -> str | None:
    version = versions.installed(distribution)
    return None if version is None else str(version)


def _vllm_requirement(found: Mapping[str, str]) -> VllmRequirement | None:
    """The first installed distribution's requirement; one that only stands in for vLLM has none."""
    for distribution, version in found.items():
        for text in metadata.requires(distribution) or ():
            requirement = Requirement(text)
            if requirement.name == "transformers" and (requirement.marker is None or requirement.marker.evaluate()):
                return VllmRequirement(distribution, version, str(requirement.specifier))
    return None


def _entry_points() -> tuple[str, ...]:
    ours = re.compile(r"hf_backend(\.|:)")
    return tuple(
        sorted({point.name for point in metadata.entry_points(group=ENTRY_POINT_GROUP) if ours.match(point.value)})
    )
