"""Schedulers and workers of Dask in new processes, forked from one that has loaded it.

``python -m tests.batch.forked_dask FD`` is that one. For each message at FD it forks a process, and sends its
number back. It collects those that end.
"""

from __future__ import annotations

import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tests.support.commands import take_over

_MOST_BYTES = 1 << 17


class DaskProcess:
    """One of these, as far as tests need `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self._process = os.pidfd_open(pid)

    def __del__(self) -> None:
        os.close(self._process)

    def send_signal(self, number: signal.Signals) -> None:
        if not _ended(self._process, 0):
            signal.pidfd_send_signal(self._process, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self) -> None:
        _ended(self._process, None)


def start(what: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> DaskProcess:
    """Start a ``scheduler`` or ``worker``."""
    with log.open("ab") as errors:
        request = json.dumps([what, arguments, os.getcwd(), dict(environment)])
        socket.send_fds(_parent(), [request.encode()], [errors.fileno()])
    return DaskProcess(int(_parent().recv(_MOST_BYTES)))


def _ended(process: int, milliseconds: int | None) -> bool:
    ending = select.poll()
    ending.register(process, select.POLLIN)
    return bool(ending.poll(milliseconds))


@functools.cache
def _parent() -> socket.socket:
    """Return the connection to the process that forks. It ends with this one, whose end closes then."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-m", "tests.batch.forked_dask", str(theirs.fileno())]
        subprocess.Popen(command, pass_fds=[theirs.fileno()], env=os.environ | {"PYTHONPATH": os.getcwd()})
    return ours


def _serve(control: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has ended is gone
    for what in ("scheduler", "worker"):
        import_module(f"distributed.cli.dask_{what}")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MOST_BYTES, 1)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become(message, descriptors[0])
        os.close(descriptors[0])
        control.send(str(pid).encode())


def _become(message: bytes, errors: int) -> NoReturn:
    try:
        os.dup2(errors, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        what, arguments, folder, environment = json.loads(message)
        take_over(arguments, folder, environment)
        import dask

        dask.config.refresh()
        import_module(f"distributed.cli.dask_{what}").main()
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
