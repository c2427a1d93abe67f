"""Processes of servers: started in a folder, awaited, and ended by their own process ids."""

from __future__ import annotations

import contextlib
import signal
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


@contextlib.contextmanager
def running(
    command: Sequence[str | Path],
    log: Path,
    environment: Mapping[str, str] | None = None,
    *,
    end: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process, sent a signal when the block ends, and killed if it goes on for 10 seconds."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command], stdout=output, stderr=output, env=environment, cwd=log.parent
        )
    try:
        yield process
    finally:
        process.send_signal(end)
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
            urllib.request.urlopen(url, timeout=10).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"The server at {url} did not start:\n{log.read_text(errors='replace')[-4000:]}")
