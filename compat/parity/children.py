"""Runs functions in forked children, so that one import of vLLM serves many engines.

Takes tasks (a name and a function without arguments); gives each task's outcome as it ends. A child that crashes, hangs
or leaves threads behind touches nobody else. Fork before anything in the parent computes: a forked thread pool is dead.
"""

import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Task:
    """What a child shall do."""

    name: str
    work: Callable[[], Any]
    """Its result must be picklable."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task."""

    task: Task
    result: Any
    """What the function returned; None if it failed."""
    error: str | None
    """What failed, in one line; None if nothing did."""
    seconds: float
    log: Path
    """The child's whole output."""


@dataclass(slots=True)
class _Child:
    task: Task
    pid: int
    pipe: int
    log: Path
    started: float
    received: bytearray


def run_forked(tasks: Sequence[Task], *, logs: Path, jobs: int = 1, limit_s: float = 300.0) -> Iterator[Outcome]:
    """Run `tasks` in at most `jobs` children at once and yield outcomes in the order in which they end.

    A child that takes longer than `limit_s` seconds is ended. Each child writes its output below `logs`.
    """
    logs.mkdir(parents=True, exist_ok=True)
    waiting = list(reversed(tasks))
    running: list[_Child] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_fork(waiting.pop(), logs))
            ready, _, _ = select.select([child.pipe for child in running], [], [], 0.5)
            for child in list(running):
                if child.pipe in ready and (data := os.read(child.pipe, 1 << 20)):
                    child.received += data
                    continue
                late = time.perf_counter() - child.started > limit_s
                if child.pipe in ready or late:
                    running.remove(child)
                    yield _collect(child, limit_s if late else None)
    finally:
        for child in running:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)


def _fork(task: Task, logs: Path) -> _Child:
    log = logs / f"{task.name.replace('/', '-')}.log"
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_child(task, log, reading, writing)
    os.close(writing)
    return _Child(task, pid, reading, log, time.perf_counter(), bytearray())


def _be_child(task: Task, log: Path, reading: int, writing: int) -> None:
    # Never returns: an exception must not run the parent's code, and the parent's clean-up is not ours to do.
    try:
        os.close(reading)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # New streams: the parent's may hold unwritten text, and may be a test runner's that never reaches the log.
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        message: tuple[Any, str | None]
        try:
            message = (task.work(), None)
        except BaseException as error:  # noqa: BLE001  (whatever it is, it is the child's outcome)
            traceback.print_exc()
            message = (None, _in_one_line(error))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(message, pipe)
    finally:
        os._exit(0)


def _in_one_line(error: BaseException) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text}"[:300]


def _collect(child: _Child, ended_after_s: float | None) -> Outcome:
    if ended_after_s is not None:
        os.kill(child.pid, signal.SIGKILL)
    _, status = os.waitpid(child.pid, 0)
    os.close(child.pipe)
    result: Any = None
    error: str | None
    if ended_after_s is not None:
        error = f"found no result after {ended_after_s:.0f} s; the child was ended"
    elif not child.received:
        error = f"the child died without a result (wait status {status})"
    else:
        result, error = pickle.loads(bytes(child.received))
    return Outcome(child.task, result, error, time.perf_counter() - child.started, child.log)
