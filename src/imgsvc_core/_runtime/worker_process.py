"""The processes in which strangers' pictures are decoded.

``python -m imgsvc_core._runtime.worker_process FD BYTES PRELOADS MODULE...`` is the fork server: it loads the
library and some modules once, and forks a worker for each socket that it receives at FD, or another fork
server, which shares its memory. A worker does one task at a time, until its socket closes.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import mmap
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import attrs

from imgsvc_core._runtime.machine import oom_kills
from imgsvc_core._runtime.process_memory import NO_MEMORY, cause_of, forget_shortage, show_shortage
from imgsvc_core._runtime.tasks import Task
from imgsvc_core._runtime.worker_messages import (
    CAUSE,
    FAILED,
    FORK,
    FORK_SERVER,
    READY,
    REFUSED,
    REPLY,
    REQUEST,
    SHORT,
)
from imgsvc_core._runtime.worker_setup import preload, prepare_worker
from imgsvc_core.errors import ImgsvcError, MemoryLimitExceeded, SpecError
from imgsvc_core.fonts import name_fonts

_LIBC = ctypes.CDLL(None)
_LEFT_TO_THE_PARENT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PIECE_BYTES = 1 << 20
_MOST_REASON = 1000  # bytes
_NO_MEMORY = {"error": MemoryLimitExceeded.slug, "message": NO_MEMORY, "problems": [], "more": {}}


class _Worker(NamedTuple):
    """The fork server's end of a worker: its id, its socket, and its notes, which the pool can read."""

    pid: int
    connection: socket.socket
    notes: mmap.mmap


def main(
    control: socket.socket, memory_bytes: int | None, modules: Sequence[str], *, preloads: bool
) -> NoReturn:
    """Load the library and modules, then fork workers."""
    gc.disable()  # modules stay, so there is nothing to collect
    for number in _LEFT_TO_THE_PARENT:
        # A terminal or systemd sends these to the whole group, but requests under way are to finish.
        signal.signal(number, signal.SIG_IGN)
    prepare_worker(memory_bytes)
    if preloads:
        preload()
        with contextlib.suppress(OSError):  # who draws a text names them again, and tells what is wrong
            name_fonts()  # a text that is drawn here would leave workers without the thread of Pango
    else:
        import_module("imgsvc_core.processing")
    for module in modules:
        _import(module, control)
    gc.enable()
    gc.collect()
    gc.freeze()  # keeps the memory that workers share from being written to
    _serve_forks(control, memory_bytes)


def _import(module: str, control: socket.socket) -> None:
    """Import a module, or tell the parent why that is not possible, and end."""
    try:
        import_module(module)
    except BaseException as error:  # modules raise anything, even SystemExit
        reason = f"{type(error).__name__}: {error}".encode(errors="replace")[:_MOST_REASON]
        control.send(FAILED + module.encode() + b"\0" + reason)
        os._exit(1)


def _serve_forks(control: socket.socket, memory_bytes: int | None) -> NoReturn:
    """Fork a worker, or another server, for each socket that arrives, until its parent ends."""
    with contextlib.suppress(ConnectionError):  # the parent has ended before it asked for a worker
        control.send(READY)
        _fork_workers(control, memory_bytes)
    os._exit(0)


def _fork_workers(control: socket.socket, memory_bytes: int | None) -> None:
    """Fork a process for each socket that arrives, and collect those that end."""
    known_kills = oom_kills()
    workers: dict[int, _Worker] = {}  # by the file descriptor of the process
    events = select.poll()
    events.register(control, select.POLLIN)
    while True:
        for descriptor, _ in events.poll():
            if descriptor in workers:
                events.unregister(descriptor)
                os.close(descriptor)
                kills = oom_kills()
                if _reap(workers.pop(descriptor), memory_bytes, oom_killed=kills > known_kills):
                    known_kills += 1
                continue
            message, descriptors, _, _ = socket.recv_fds(control, len(FORK), 1)
            if not message:
                return
            connection = socket.socket(fileno=descriptors[0])
            noted = os.memfd_create("notes")
            os.ftruncate(noted, 1 + max(SHORT, CAUSE))
            notes = mmap.mmap(noted, 0)
            try:
                pid = os.fork()
            except OSError:
                _refuse(connection)
                os.close(noted)
                continue
            if pid == 0:
                for inherited in (control, *(worker.connection for worker in workers.values())):
                    inherited.close()
                for inherited_process in workers:
                    os.close(inherited_process)
                _die_with_parent()
                if message == FORK_SERVER:
                    _serve_forks(connection, memory_bytes)
                _silence()
                show_shortage(notes)
                with contextlib.suppress(ConnectionError):  # the pool does not wait for the reply any more
                    _work(connection, noted, notes)
                os._exit(0)
            os.close(noted)
            process = os.pidfd_open(pid)
            workers[process] = _Worker(pid, connection, notes)
            events.register(process, select.POLLIN)


def _refuse(connection: socket.socket) -> None:
    """Tell that the machine refuses another process."""
    with connection, contextlib.suppress(OSError):  # the parent may have ended
        connection.send(REFUSED)


def _reap(worker: _Worker, memory_bytes: int | None, *, oom_killed: bool) -> bool:
    """Collect a worker that ended, and note why. Return True if the kernel ended it for want of memory.

    The kernel may choose a worker that holds little, because others hold much. Such a one is not to blame.
    """
    _, status, usage = os.wait4(worker.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    oom_killed = oom_killed and code == -signal.SIGKILL
    is_large = memory_bytes is None or 1024 * usage.ru_maxrss > memory_bytes // 2
    with worker.notes as notes, worker.connection:  # whose end tells the pool
        notes[CAUSE] = cause_of(code, short=bool(notes[SHORT]), oom_killed=oom_killed and is_large)
    return oom_killed


def _work(connection: socket.socket, noted: int, notes: mmap.mmap) -> None:
    """Do the tasks that arrive, one after the other, until the pool closes its end or memory is short.

    A task that lacked memory may leave much of it occupied, which the next one would lack.
    """
    socket.send_fds(connection, [READY], [os.pidfd_open(os.getpid()), noted])
    while True:
        header, descriptors, _, _ = socket.recv_fds(connection, REQUEST.size, 1)
        if not header:
            return
        task, threads = pickle.loads(_receive(connection, REQUEST.unpack(header)[0]))
        source = _content(descriptors[0]) if descriptors else b""
        forget_shortage()
        reply, data = _answer(task, source, threads)
        lacked = reply.get("error") == MemoryLimitExceeded.slug and (notes[SHORT] or reply is _NO_MEMORY)
        if lacked:
            reply = {**reply, "ended": True}
        told = json.dumps(reply, separators=(",", ":")).encode()
        framed = REPLY.pack(len(told), len(data)) + told
        connection.sendall(framed + data[:_PIECE_BYTES])  # at once, as the pool wakes up for each piece
        if len(data) > _PIECE_BYTES:
            connection.sendall(memoryview(data)[_PIECE_BYTES:])
        if lacked:
            return
        del source, data


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        return file.read()


def _answer(task: Task, source: bytes, threads: int) -> tuple[dict[str, Any], bytes]:
    """Do a task. The reply is plain JSON, as nothing that a broken decoder says may run in the parent."""
    try:
        outcome = task.run(source, threads)
    except MemoryError:
        return _NO_MEMORY, b""
    except ImgsvcError as error:
        problems = (
            [attrs.astuple(problem) for problem in error.problems] if isinstance(error, SpecError) else []
        )
        more = {name: value for name, value in vars(error).items() if isinstance(value, int | str)}
        return {"error": error.slug, "message": error.message, "problems": problems, "more": more}, b""
    except Exception:  # a mistake of ours
        return {"fault": traceback.format_exc()}, b""
    return {"facts": outcome.facts}, outcome.data


def _receive(connection: socket.socket, size: int) -> bytearray:
    """Read exactly that many bytes. The pool may close its end at any time."""
    received = bytearray(size)
    view, count = memoryview(received), 0
    while count < size:
        read = connection.recv_into(view[count : count + _PIECE_BYTES])
        if not read:
            raise ConnectionResetError("The pool closed its end.")
        count += read
    return received


def _silence() -> None:
    """Discard what libraries print: a full pipe would block them, and they may quote the picture."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _die_with_parent() -> None:
    """Ask the kernel to kill this worker when the fork server ends. That one ends with its parent."""
    pr_set_pdeathsig = 1
    _LIBC.prctl(pr_set_pdeathsig, signal.SIGKILL)


if __name__ == "__main__":
    main(
        socket.socket(fileno=int(sys.argv[1])),
        int(sys.argv[2]) or None,
        sys.argv[4:],
        preloads=sys.argv[3] == "1",
    )
