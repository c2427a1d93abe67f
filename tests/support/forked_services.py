"""``imgsvc serve`` and ``imgsvc playground`` in new processes, forked from one that has loaded them.

``python -m tests.support.forked_services FD imgsvc_cli`` is that one. For each message at FD it forks a
service, and leaves it to its own parent, whose child it is then. Tests know processes that listen by the last
argument.

It has loaded what workers need as well. So a service forks its first fork server, if it has the environment of
that process. Later ones are begun as usual.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, cast

from imgsvc_core._runtime.forkserver import Forkserver
from imgsvc_core._runtime.worker_setup import preload
from tests.support.commands import take_over

_LOADED = (
    "imgsvc_cli.commands.playground",
    "imgsvc_cli.commands.serve",
    "imgsvc_http.serve",
    "imgsvc_http.server.log",
    "imgsvc_http.state.failures",
    "imgsvc_http.workers.tasks",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "uvloop",
)
_PYTHONPATH = os.environ.get("PYTHONPATH")
_MOST_BYTES = 1 << 17
_PR_SET_CHILD_SUBREAPER = 36
_one_at_a_time = threading.Lock()


class Child:
    """A child of this process, as far as services use `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


class ForkedProcess:
    """A child of this process, as `subprocess.Popen` shows those that it has started itself."""

    def __init__(self, pid: int, stdout: int) -> None:
        self.pid = pid
        self.stdout = os.fdopen(stdout, encoding="utf-8")
        self.returncode: int | None = None
        self._collecting = threading.Lock()
        self._ended = os.pidfd_open(pid)

    def __del__(self) -> None:
        os.close(self._ended)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        ending = select.poll()
        ending.register(self._ended, select.POLLIN)
        if not ending.poll(None if timeout is None else 1000 * timeout):
            raise subprocess.TimeoutExpired("imgsvc serve", timeout or 0)
        with self._collecting:
            if self.returncode is None:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Wait for its end and, as what it printed shows, for that of the processes that it began."""
        self.wait(timeout)
        if self.stdout.closed:
            return "", None
        with self.stdout as printed:
            return printed.read(), None


def loads_the_same() -> bool:
    """Whether a process that is started now would find the packages that the forked ones have."""
    return os.environ.get("PYTHONPATH") == _PYTHONPATH


def start(arguments: Sequence[str], errors: Path) -> ForkedProcess:
    """Run the command with arguments. What it prints to standard error is added to a file."""
    request = [arguments, os.getcwd(), dict(os.environ), resource.getrlimit(resource.RLIMIT_NOFILE)]
    reading, writing = os.pipe()
    adopt = functools.partial(ctypes.CDLL(None).prctl, _PR_SET_CHILD_SUBREAPER)
    with errors.open("ab") as log, os.fdopen(writing, "wb") as stdout, _one_at_a_time:
        adopt(1)
        try:
            streams = [stdout.fileno(), log.fileno()]
            socket.send_fds(_parent(), [json.dumps(request).encode()], streams)
            pid = int(_parent().recv(_MOST_BYTES))
        finally:
            adopt(0)
    return ForkedProcess(pid, reading)


@functools.cache
def _parent() -> socket.socket:
    """Return the connection to the process that forks. It ends with this one, whose end closes then."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.support.forked_services", str(theirs.fileno()), "imgsvc_cli"]
        subprocess.Popen(command, pass_fds=[theirs.fileno()])
    return ours


def _serve(control: socket.socket) -> None:
    inherited = _shared_environment()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as in every fork server, before it imports NumPy
    for name in _LOADED:
        import_module(name)
    preload()
    del os.environ["OPENBLAS_NUM_THREADS"]
    gc.collect()
    gc.freeze()
    gc.unfreeze = lambda: None  # before it imports, the command collects what came before
    while True:
        message, streams, _, _ = socket.recv_fds(control, _MOST_BYTES, 2)
        if not message:
            return
        told, telling = os.pipe()
        between = os.fork()
        if between == 0:
            if pid := os.fork():
                os.write(telling, str(pid).encode())
                os._exit(0)
            for descriptor in (control.detach(), told, telling):
                os.close(descriptor)
            _become_service(message, streams, inherited)
            return
        os.waitpid(between, 0)  # whose child the parent has by now
        control.send(os.read(told, _MOST_BYTES))
        for descriptor in (told, telling, *streams):
            os.close(descriptor)


def _become_service(message: bytes, streams: list[int], inherited: Mapping[str, str]) -> None:
    from imgsvc_cli.__main__ import main

    for number, descriptor in enumerate(streams, start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, folder, environment, limit = json.loads(message)
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    take_over(arguments, folder, environment)
    if _shared_environment() == inherited:
        _fork_the_first_server()
    main()


def _shared_environment() -> dict[str, str]:
    """The variables that libraries may read as they load."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("IMGSVC_", "PYTEST_"))}


def _fork_the_first_server() -> None:
    """Let the next fork server be a fork of this process, and those after it begin as usual."""
    usual = Forkserver.begin

    def begin(
        memory_bytes: int | None,
        scratch: Path | None = None,
        *,
        umask: int = -1,
        modules: Sequence[str] = (),
    ) -> Forkserver:
        setattr(Forkserver, "begin", usual)  # noqa: B010
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        pid = os.fork()
        if pid == 0:
            ours.close()
            os.umask(umask)
            if scratch:
                os.environ["TMPDIR"] = str(scratch)
            _become_fork_server(theirs, memory_bytes, modules)
        theirs.close()
        return Forkserver(ours, cast(Any, Child(pid)))

    setattr(Forkserver, "begin", begin)  # noqa: B010


def _become_fork_server(control: socket.socket, memory_bytes: int | None, modules: Sequence[str]) -> NoReturn:
    """Run in the new process as if it had been started."""
    try:
        _rename(b"imgsvc_core._runtime.worker_process")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        from imgsvc_core._runtime.worker_process import main

        main(control, memory_bytes, modules, preloads=True)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _rename(name: bytes) -> None:
    """Show a name in the place of the arguments that this process was started with."""
    begin, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:47])
    ctypes.memmove(begin, name.ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
