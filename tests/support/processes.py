"""The processes in which pictures are decoded, as the system lists them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest


def workers_of(parent: int) -> list[int]:
    """Return the workers of the pools of a process, including those that still start."""
    return [worker for server in fork_servers_of(parent) for worker in _children(server, b"")]


def forked_workers_of(service: int) -> list[int]:
    """Return the workers of a service. Each process that listens has a server that forks them."""
    servers = [forked for first in fork_servers_of(service) for forked in _children(first, b"")]
    servers += [own for listener in listeners_of(service) for own in fork_servers_of(listener)]
    return [worker for server in servers for worker in _children(server, b"")]


def fork_servers_of(parent: int) -> list[int]:
    """Return the processes begun by another one that fork workers, or servers of listening processes."""
    return _children(parent, b"worker_process")


def listeners_of(service: int) -> list[int]:
    """Return the processes of a service that accept connections."""
    return _children(service, b"imgsvc_cli")


def children_of(parent: int) -> list[int]:
    """Return the children of a process, also ended ones that it has not collected."""
    return _children(parent, b"")


def descendants_of(process: int) -> list[int]:
    """Return the children of a process, their children and so on."""
    children = children_of(process)
    return children + [further for child in children for further in descendants_of(child)]


def kill_worker(
    parent: int, *, known: Iterable[int] = (), workers_of: Callable[[int], list[int]] = workers_of
) -> None:
    """Kill the first worker that is not ``known`` as soon as it exists, as a system out of memory does."""
    while not (new := set(workers_of(parent)) - set(known)):
        time.sleep(0.005)
    kill(new.pop())


def kill(pid: int) -> None:
    """Kill a process, which may have ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(parent: int, command: bytes) -> list[int]:
    children = [child for listed in Path(f"/proc/{parent}/task").glob("*/children") for child in _ids(listed)]
    return [child for child in children if command in _read(Path(f"/proc/{child}/cmdline"))]


def _ids(path: Path) -> list[int]:
    return [int(text) for text in _read(path).split()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


def open_files(process: int) -> list[Path]:
    """Return the links to what a process has open; none if it has ended."""
    try:
        return list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return []


def leads_to(link: Path) -> str:
    """Return what a link names; nothing if its file was closed meanwhile."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def private_memory(process: int) -> int:
    """Return how many bytes of memory a process has for itself."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    return 1024 * kilobytes


@contextlib.contextmanager
def control_group(controller: str, files: Mapping[str, int]) -> Iterator[Path]:
    """Make a real group of version 1 below that of this process."""
    path = next(
        (line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines()
         if line.split(":")[1] == controller), None,
    )  # fmt: skip
    group = Path("/sys/fs/cgroup", controller, (path or "/")[1:], f"imgsvc-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        for name, value in files.items():
            (group / name).write_text(str(value))
        yield group
    finally:
        group.rmdir()
