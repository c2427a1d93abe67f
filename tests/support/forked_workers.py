"""Fork servers that are forked from a process of the tests, which has loaded the library for all of them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import attrs

from imgsvc_core._runtime.forkserver import Child, Forkserver
from imgsvc_core._runtime.worker_setup import preload

_MOST_BYTES = 1 << 16
_READ_LATER = ("AWS_", "DASK_", "FSSPEC_", "IMGSVC_", "PYTEST_")


@attrs.frozen
class ForkedWorkers:
    """A process that has loaded what workers need, and the variables that libraries may have read then."""

    environment: Mapping[str, str]

    @classmethod
    def load(cls) -> ForkedWorkers:
        """Load it here, before anything else has loaded NumPy."""
        environment = _environment()
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in every fork server
        preload()
        del os.environ["OPENBLAS_NUM_THREADS"]
        return cls(environment)

    def fork_next(self, *, now: bool = False) -> None:
        """Let the next fork server be a fork of this process, if it needs the same, and later ones not.

        One forked ``now`` has no trace of what this process works on before it begins a pool.
        """
        usual = Forkserver.begin
        if _environment() != self.environment:
            return
        early = _waiting() if now else None

        def begin(
            memory_bytes: int | None,
            scratch: Path | None = None,
            *,
            umask: int = -1,
            modules: Sequence[str] = (),
            preloads: bool = True,
        ) -> Forkserver:
            setattr(Forkserver, "begin", usual)  # noqa: B010
            ours, pid = early or _waiting()
            ours.send(pickle.dumps((memory_bytes, scratch, umask, modules)))
            ours.setblocking(False)
            return Forkserver(ours, Child(pid))

        setattr(Forkserver, "begin", begin)  # noqa: B010


def _environment() -> dict[str, str]:
    """The variables that libraries may read as they load."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_READ_LATER)}


def _waiting() -> tuple[socket.socket, int]:
    """Fork a process that becomes a fork server once it is told which. Return the connection to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _become_fork_server(theirs)
    theirs.close()
    return ours, pid


def _become_fork_server(control: socket.socket) -> NoReturn:
    """Run in the new process as if it had been started."""
    try:
        _leave_all_but(control.fileno())
        told = control.recv(_MOST_BYTES)
        if not told:
            os._exit(0)
        memory_bytes, scratch, umask, modules = pickle.loads(told)
        if umask != -1:
            os.umask(umask)
        if scratch:
            os.environ["TMPDIR"] = str(scratch)
        _rename(b"imgsvc_core._runtime.worker_process")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        from imgsvc_core._runtime.worker_process import main

        main(control, memory_bytes, modules, preloads=True)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _leave_all_but(kept: int) -> None:
    """Close files and forget handlers of the process that forked: at others' ends it would seem alive."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor != kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _rename(name: bytes) -> None:
    """Show a name in the place of the arguments that this process was started with."""
    begin, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:47])
    ctypes.memmove(begin, name.ljust(end - begin, b"\0"), end - begin)
