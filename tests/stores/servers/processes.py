"""Processes of servers: started in a folder, awaited, and ended by their own process ids."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


@contextlib.contextmanager
def working_folder() -> Iterator[Path]:
    """An empty folder that is removed in the end; its path is short, for the sake of sockets in it."""
    with tempfile.TemporaryDirectory(prefix="imgsvc-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended when the block ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=output, stderr=output, env=environment, cwd=log.parent
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_http(url: str, process: subprocess.Popen[bytes], log: Path, *, seconds: float = 60) -> None:
    """Return when a server answers, whatever it says."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"The server at {url} did not start:\n{log.read_text(errors='replace')[-4000:]}")
