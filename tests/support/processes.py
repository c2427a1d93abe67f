"""The processes in which pictures are decoded, as the system lists them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path


def workers_of(parent: int) -> list[int]:
    """Those of a process that are there, be it that they still start."""
    children = [child for listed in Path(f"/proc/{parent}/task").glob("*/children") for child in _ids(listed)]
    return [child for child in children if b"spawn_main" in _read(Path(f"/proc/{child}/cmdline"))]


def kill_worker(parent: int, *, known: Iterable[int] = ()) -> None:
    """Kill the first that is not ``known``, as soon as it is there, as a system without memory does."""
    while not (new := set(workers_of(parent)) - set(known)):
        time.sleep(0.005)
    os.kill(new.pop(), signal.SIGKILL)


def _ids(path: Path) -> list[int]:
    return [int(text) for text in _read(path).split()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""
