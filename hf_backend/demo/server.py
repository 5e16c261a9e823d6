"""A real `vllm serve CHECKPOINT --model-impl transformers`, started, watched and stopped.

Takes a checkpoint folder; gives the address of a healthy server and its log. Not for asking it anything (`client`).
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

HOST = "127.0.0.1"
MODEL_NAME = "digits"
LONGEST = 256
"""Tokens of a request: three pictures, the question and the answer take about 60."""

MOST_PICTURES = 3
HEALTHY_WITHIN, STOPPED_WITHIN = 300.0, 20.0
"""Seconds. Measured on two cores until healthy: 53 s, and up to 150 s beside three other busy processes."""

TAIL = 40
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "no_proxy": f"{HOST},localhost",
    "NO_PROXY": f"{HOST},localhost",
}
"""Nothing is fetched or reported; 1 GiB of cache; no proxy between a client and this machine."""

FEW_THREADS = "2"
"""For OMP_NUM_THREADS where it isn't set: the model is tiny, and more threads only wait for one another."""


class ServerError(RuntimeError):
    """The server died or wasn't healthy in time; the text ends with the tail of its log."""


def free_port() -> int:
    """A TCP port on this machine that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def serve_arguments(checkpoint: Path, port: int, extra: Sequence[str] = ()) -> list[str]:
    """Arguments of `vllm` that serve `checkpoint` in float32 under the name `digits`."""
    return [
        *("serve", str(checkpoint), "--model-impl", "transformers", "--served-model-name", MODEL_NAME),
        *("--host", HOST, "--port", str(port), "--dtype", "float32", "--max-model-len", str(LONGEST)),
        *("--max-num-seqs", "16", "--limit-mm-per-prompt", f'{{"image": {MOST_PICTURES}}}'),
        # Compiling the language model takes longer than everything the demo asks of it.
        "--enforce-eager",
        *extra,
    ]


class Server:
    """A `vllm serve` process group. Use as a context manager: it is stopped whatever happens."""

    def __init__(
        self,
        checkpoint: Path,
        *,
        port: int | None = None,
        log: Path | None = None,
        say: Callable[[str], None] = print,
        extra: Sequence[str] = (),
        healthy_within: float = HEALTHY_WITHIN,
    ) -> None:
        """`port`: a free one if None. `log`: where the server's output goes, a new file in the temporary folder if None.
        `extra`: more arguments of `vllm serve`. `healthy_within`: seconds."""
        self.port = port or free_port()
        self.log = log or Path(tempfile.mkdtemp(prefix="hf-backend-")) / "server.log"
        self._checkpoint, self._extra, self._say, self._healthy_within = checkpoint, extra, say, healthy_within
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    @property
    def url(self) -> str:
        """Base address, without a path."""
        return f"http://{HOST}:{self.port}"

    def log_text(self) -> str:
        """All that the server's processes printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def start(self) -> float:
        """Start and wait until healthy; seconds it took. Raises `ServerError`, with nothing left running."""
        command = [sys.executable, "-m", "vllm.entrypoints.cli.main"]
        command += serve_arguments(self._checkpoint, self.port, self._extra)
        self._say(f"$ vllm {' '.join(command[3:])}")
        self._say(f"  log: {self.log}")
        environment = {"OMP_NUM_THREADS": FEW_THREADS, **os.environ, **ENVIRONMENT}
        self._output = self.log.open("wb")
        # In a session of its own, so that one signal reaches the API server, the engine and their helpers.
        self._process = subprocess.Popen(
            command, stdout=self._output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            return self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise

    def _wait_until_healthy(self) -> float:
        began = time.monotonic()
        next_word = 10.0
        while True:
            seconds = time.monotonic() - began
            if self._process is not None and self._process.poll() is not None:
                raise self._error(
                    f"exit status {self._process.returncode} after {seconds:.0f} s", "a server that stays up"
                )
            if self.healthy():
                return seconds
            if seconds > self._healthy_within:
                raise self._error(
                    f"no answer on /health for {seconds:.0f} s", f"one within {self._healthy_within:.0f} s"
                )
            if seconds > next_word:
                self._say(f"  {seconds:3.0f} s, not healthy yet: {_last_line(self.log_text())}")
                next_word += 10
            time.sleep(0.3)

    def _error(self, found: str, expected: str) -> ServerError:
        tail = "\n".join(self.log_text().splitlines()[-TAIL:])
        return ServerError(f"vllm serve: found {found}; expected {expected}. The end of its log ({self.log}):\n{tail}")

    def healthy(self) -> bool:
        """Whether /health answers 200 right now."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self.url}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def wait(self) -> int:
        """Until the server ends by itself; its exit status."""
        if self._process is None:
            raise RuntimeError("Server.wait: found no process; expected a started server. Call start() first.")
        return self._process.wait()

    def stop(self) -> None:
        """End all processes of the server: politely, then by force. Safe to call again."""
        process, self._process = self._process, None
        if process is not None:
            # The API server ends its engine by itself; a signal to all of them at once makes it report a dead engine.
            process.terminate()
            if not _ended(process, STOPPED_WITHIN):
                self._say(f"  still there after {STOPPED_WITHIN:.0f} s: ending the server's processes by force")
                _signal_group(process.pid, signal.SIGKILL)
                _ended(process, STOPPED_WITHIN)
            process.wait()
        if self._output is not None:
            self._output.close()
            self._output = None

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _signal_group(group: int, kind: int) -> bool:
    """Send a signal (0: just look) to a process group; whether there is anybody left in it."""
    try:
        os.killpg(group, kind)
    except ProcessLookupError:
        return False
    return True


def _ended(process: subprocess.Popen[bytes], patience: float) -> bool:
    """Wait until nobody is left in the server's process group, at most `patience` seconds; whether it came to that."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        process.poll()
        if not _signal_group(process.pid, 0):
            return True
        time.sleep(0.1)
    return False


def _last_line(text: str) -> str:
    """What a log says last, without the process, time and file in front of it."""
    lines = [line.partition("] ")[2].strip() for line in text.splitlines() if " INFO " in line]
    said = [line for line in lines if line]
    return said[-1][:90] if said else "importing"
