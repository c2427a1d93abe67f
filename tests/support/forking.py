"""Processes that are forked from one that has loaded what they need, and are children of this one."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import NoReturn

_MOST_BYTES = 1 << 20
_PR_SET_CHILD_SUBREAPER = 36
_one_at_a_time = threading.Lock()


class Forked:
    """A child of this process, as `subprocess.Popen` shows those that it has started itself."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
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
            raise subprocess.TimeoutExpired("a forked process", timeout or 0)
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


def parent(module: str, *arguments: str) -> socket.socket:
    """Start a module that calls `serve`. Return the connection to it: it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
    with theirs:
        command = [sys.executable, "-m", module, str(theirs.fileno()), *arguments]
        # Without what libraries of this process have set behind Python's back, as programs are started.
        subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(os.environ))
    return ours


def fork(connect: Callable[[], socket.socket], request: object, streams: Sequence[int]) -> int:
    """Return the pid of a process that gets a request and descriptors, and is a child of this one."""
    adopt = functools.partial(ctypes.CDLL(None).prctl, _PR_SET_CHILD_SUBREAPER)
    with _one_at_a_time:
        adopt(1)
        try:
            socket.send_fds(connect(), [json.dumps(request).encode()], streams)
            return int(connect().recv(_MOST_BYTES))
        finally:
            adopt(0)


def serve(control: socket.socket, modules: Iterable[str], become: Callable[[bytes, list[int]], None]) -> None:
    """Load modules, then fork a process for each message, which leaves it to its own parent."""
    for name in modules:
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
            try:
                become(message, streams)
            except SystemExit as ending:
                end(ending.code)
            end(None)
        os.waitpid(between, 0)  # whose child the parent has by now
        control.send(os.read(told, _MOST_BYTES))
        for descriptor in (told, telling, *streams):
            os.close(descriptor)


def end(code: object) -> NoReturn:
    """Do what Python does at its end, but take no module apart: that copies most of the shared memory.

    A forked process ends so in a fifth of the time.
    """
    if code is None or isinstance(code, int):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        gc.collect()
        with contextlib.suppress(AttributeError, OSError, ValueError):  # which Python itself would tell
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code or 0)
    sys.exit(code)  # type: ignore[arg-type]
