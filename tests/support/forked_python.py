"""Programs of Python in new processes, forked from one that has loaded the library and the command already.

``python -m tests.support.forked_python FD MODULE...`` is that one. For each message at FD it forks a program,
and leaves it to its own parent, whose child it is then. It loads further modules, and what workers need: a
program forks its first fork server. Later ones start as usual.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from imgsvc_core._runtime.forkserver import Forkserver
from tests.support.forked_workers import ForkedWorkers
from tests.support.forking import Forked, fork, parent, serve

COMMAND = ("-m", "imgsvc_cli")

_COMMANDS = (
    "accounts", "batch", "cache", "explain", "formats", "inspect", "keys", "presets", "process", "schema",
    "signing_keys", "url",
)  # fmt: skip
_STATE = (
    "accounts", "database", "encrypted", "failures", "keys", "migrating", "presets", "signing_keys", "vault",
)  # fmt: skip
_LOADED = (
    *(f"imgsvc_cli.commands.{name}" for name in _COMMANDS),
    *(f"imgsvc_http.state.{name}" for name in _STATE),
    "imgsvc_batch.executors",
    "imgsvc_batch.in_place",
    "imgsvc_http.settings",
    "sqlalchemy.dialects.sqlite.pysqlite",
)


class ForkedPython(Forked):
    """A child of this process, used as `subprocess.Popen`. What it prints goes to files until it ends."""

    def __init__(self, pid: int, streams: tempfile.TemporaryDirectory[str]) -> None:
        super().__init__(pid)
        self._streams = streams

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end. Return what it printed to standard output and standard error."""
        self.wait(timeout)
        out, err = self.printed()
        return out.decode(), err.decode()

    def printed(self) -> tuple[bytes, bytes]:
        """Return what it has printed so far."""
        out, err = (Path(self._streams.name, name).read_bytes() for name in ("output", "errors"))
        return out, err


def start(
    *arguments: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    session: bool = False,
    ignored: Sequence[signal.Signals] = (),
    loaded: Sequence[str] = (),
) -> ForkedPython:
    """Run Python with arguments: ``-m`` a module, ``-c`` code or the path of a script, and what they take.

    It may lead a ``session`` of its own, begin with signals ``ignored``, and have further modules ``loaded``.
    """
    streams = tempfile.TemporaryDirectory()
    request = [arguments, str(folder or Path.cwd()), dict(environment or os.environ), session, list(ignored)]
    Path(streams.name, "input").write_bytes(stdin)
    with contextlib.ExitStack() as files:
        names = {"input": "rb", "output": "wb", "errors": "wb"}
        opened = [files.enter_context(Path(streams.name, name).open(mode)) for name, mode in names.items()]
        pid = fork(lambda: _parent(*loaded), request, [file.fileno() for file in opened])
    return ForkedPython(pid, streams)


def run(*arguments: str, timeout: float | None = 300, **options: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end, with the options of `start`. A program that takes longer is killed."""
    process = start(*arguments, **options)  # type: ignore[arg-type]
    try:
        out, err = process.communicate(timeout)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(arguments, process.wait(), out, err)


def begin_fork_server(
    memory_bytes: int | None,
    scratch: Path | None = None,
    *,
    umask: int = -1,
    modules: Sequence[str] = (),
    preloads: bool = True,
) -> Forkserver:
    """Do as `Forkserver.begin` does, but fork the process."""
    program = f"""
import os, socket
from imgsvc_core._runtime.worker_process import main

{umask} == -1 or os.umask({umask})
main(socket.socket(fileno=0), {memory_bytes}, {[*modules]}, preloads={preloads})
"""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    environment = {**os.environ, **({"TMPDIR": str(scratch)} if scratch else {})}
    with theirs:
        request = [["-c", program], str(Path.cwd()), environment, False, []]
        pid = fork(_parent, request, [theirs.fileno(), 1, 2])
    return Forkserver(ours, cast(Any, Forked(pid)))


@functools.cache
def _parent(*loaded: str) -> socket.socket:
    """Return the connection to the process that forks. It ends with this one, whose end closes then."""
    return parent("tests.support.forked_python", *loaded)


def _become(message: bytes, streams: Sequence[int], workers: ForkedWorkers, loaded: Sequence[str]) -> None:
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, folder, environment, session, ignored = json.loads(message)
    if session:
        os.setsid()
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    take_over([], folder, environment)
    workers.fork_next(now=bool(loaded))
    added = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
    sys.path[:0] = filter(None, added)
    kind, *others = arguments
    if kind == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *others[1:]]
        exec(compile(others[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


def take_over(arguments: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
    """Make arguments, folder and environment those of this process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments


if __name__ == "__main__":
    from tests.support.used_database import use_database

    forking, further = socket.socket(fileno=int(sys.argv[1])), sys.argv[2:]
    ready = ForkedWorkers.load()
    use_database()
    serve(forking, (*_LOADED, *further), functools.partial(_become, workers=ready, loaded=further))
