"""Programs of Python in new processes, forked from one that has loaded the library and the command already.

``python -m tests.support.forked_python FD MODULE...`` is that one. For each message at FD it forks a program,
and leaves it to its own parent, whose child it is then. It loads further modules, and what workers need: a
program forks its first fork server. Later ones start as usual.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from tests.support.forked_workers import ForkedWorkers

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
_MOST_BYTES = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_one_at_a_time = threading.Lock()


class ForkedPython:
    """A child of this process, used as `subprocess.Popen`. What it prints goes to files until it ends."""

    def __init__(self, pid: int, streams: tempfile.TemporaryDirectory[str]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._streams = streams
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
            raise subprocess.TimeoutExpired("python", timeout or 0)
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

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
    adopt = functools.partial(ctypes.CDLL(None).prctl, _PR_SET_CHILD_SUBREAPER)
    Path(streams.name, "input").write_bytes(stdin)
    with contextlib.ExitStack() as files, _one_at_a_time:
        names = {"input": "rb", "output": "wb", "errors": "wb"}
        opened = [files.enter_context(Path(streams.name, name).open(mode)) for name, mode in names.items()]
        adopt(1)
        try:
            parent = _parent(*loaded)
            socket.send_fds(parent, [json.dumps(request).encode()], [file.fileno() for file in opened])
            pid = int(parent.recv(_MOST_BYTES))
        finally:
            adopt(0)
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


@functools.cache
def _parent(*loaded: str) -> socket.socket:
    """Return the connection to the process that forks. It ends with this one, whose end closes then."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    with theirs:
        command = [sys.executable, "-m", "tests.support.forked_python", str(theirs.fileno()), *loaded]
        subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(os.environ))
    return ours


def _serve(control: socket.socket, loaded: Sequence[str]) -> None:
    workers = ForkedWorkers.load()
    for name in (*_LOADED, *loaded):
        import_module(name)
    gc.collect()
    gc.freeze()
    gc.unfreeze = lambda: None  # before it imports, the command collects what came before
    while True:
        message, streams, _, _ = socket.recv_fds(control, _MOST_BYTES, 3)
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
            _become(message, streams, workers, loaded)
            return
        os.waitpid(between, 0)  # whose child the parent has by now
        control.send(os.read(told, _MOST_BYTES))
        for descriptor in (told, telling, *streams):
            os.close(descriptor)


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
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
