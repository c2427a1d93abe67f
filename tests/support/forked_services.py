"""``imgsvc serve`` and ``imgsvc playground`` in new processes, forked from one that has loaded them.

``python -m tests.support.forked_services FD imgsvc_cli`` is that one. For each message at FD it forks a
service, and leaves it to its own parent, whose child it is then. Tests know processes that listen by the last
argument.

It has loaded what workers need as well, and what services load when they need it, as the engine of webhooks.
So a service forks its first fork server. Later ones start as usual.
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
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tests.support.commands import take_over
from tests.support.forked_workers import ForkedWorkers

_LOADED = (
    "dbos",
    "imgsvc_cli.commands.playground",
    "imgsvc_cli.commands.serve",
    "imgsvc_http.serve",
    "imgsvc_http.server.log",
    "imgsvc_http.state.failures",
    "imgsvc_http.workers.tasks",
    "redis.asyncio",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "uvloop",
)
_PYTHONPATH = os.environ.get("PYTHONPATH")
_MOST_BYTES = 1 << 17
_PR_SET_CHILD_SUBREAPER = 36
_one_at_a_time = threading.Lock()


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
        # Without what libraries of this process have set behind Python's back, as services are started.
        subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(os.environ))
    return ours


def _serve(control: socket.socket) -> None:
    workers = ForkedWorkers.load()
    for name in _LOADED:
        import_module(name)
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
            _become_service(message, streams, workers)
            return
        os.waitpid(between, 0)  # whose child the parent has by now
        control.send(os.read(told, _MOST_BYTES))
        for descriptor in (told, telling, *streams):
            os.close(descriptor)


def _become_service(message: bytes, streams: list[int], workers: ForkedWorkers) -> None:
    from imgsvc_cli.__main__ import main

    for number, descriptor in enumerate(streams, start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, folder, environment, limit = json.loads(message)
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    take_over(arguments, folder, environment)
    workers.fork_next()
    main()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
