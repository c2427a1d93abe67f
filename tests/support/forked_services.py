"""``imgsvc serve`` and ``imgsvc playground`` in new processes, forked from one that has loaded them.

``python -m tests.support.forked_services FD imgsvc_cli`` is that one. For each message at FD it forks a
service, and leaves it to its own parent, whose child it is then. Tests know processes that listen by the last
argument.

It has loaded what workers need as well, and what services load when they need it, as the engine of webhooks.
So a service forks its first fork server. Later ones start as usual.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from tests.support.commands import take_over
from tests.support.forked_workers import ForkedWorkers
from tests.support.forking import Forked, fork, parent, serve

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


class ForkedProcess(Forked):
    """A child of this process, as `subprocess.Popen` shows those that it has started itself."""

    def __init__(self, pid: int, stdout: int) -> None:
        super().__init__(pid)
        self.stdout = os.fdopen(stdout, encoding="utf-8")

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


def start(
    arguments: Sequence[str], errors: Path | int, constants: Mapping[str, float] | None = None
) -> ForkedProcess:
    """Run the command with arguments. What it prints to standard error is added to a file or a pipe.

    ``constants`` of modules get other values, such as times that a test would wait for.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    request = [arguments, os.getcwd(), dict(os.environ), limit, constants or {}]
    reading, writing = os.pipe()
    with open(errors, "ab", closefd=isinstance(errors, Path)) as log, os.fdopen(writing, "wb") as stdout:
        pid = fork(_parent, request, [stdout.fileno(), log.fileno()])
    return ForkedProcess(pid, reading)


@functools.cache
def _parent() -> socket.socket:
    """Return the connection to the process that forks. It ends with this one, whose end closes then."""
    return parent("tests.support.forked_services", "imgsvc_cli")


def _become_service(message: bytes, streams: list[int], workers: ForkedWorkers) -> None:
    from imgsvc_cli.__main__ import main

    for number, descriptor in enumerate(streams, start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, folder, environment, limit, constants = json.loads(message)
    resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    for name, value in constants.items():
        module, _, constant = name.rpartition(".")
        assert hasattr(import_module(module), constant), name
        setattr(import_module(module), constant, value)
    take_over(arguments, folder, environment)
    workers.fork_next()
    main()


if __name__ == "__main__":
    from tests.support.used_database import use_database  # after what workers need

    ready = ForkedWorkers.load()
    use_database()
    become = functools.partial(_become_service, workers=ready)
    serve(socket.socket(fileno=int(sys.argv[1])), _LOADED, become)
