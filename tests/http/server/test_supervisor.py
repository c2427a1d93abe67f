"""Which process gets a connection, and how one that hangs ends."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from imgsvc_http.server.supervisor import Signals, Supervisor, _Listener


@pytest.mark.parametrize(
    ("still_open", "ends", "taken"),
    [
        ((0, 0, 0), True, [1, 2, 0, 1, 2, 0]),
        ((2, 3, 0), False, [2, 2, 0, 2, 0, 1]),
        ((0, 3, 3), True, [0] * 6),
    ],
)
def test_connections_go_to_the_process_with_the_fewest_and_in_turns(
    still_open: tuple[int, ...], ends: bool, taken: list[int]
) -> None:
    found = []
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(_pair()) for _ in still_open]
        signals = stack.enter_context(Signals())
        supervisor = Supervisor(
            pairs[0][0], lambda *_: None, 3, signals, drain_seconds=0, unresponsive_seconds=30
        )
        for number, (ours, _) in enumerate(pairs):
            supervisor._listeners[number] = _Listener(number, 4711, ours, started=0, ready=True, handed=9)
            supervisor._closed[number] = 9 - still_open[number]
        for _ in taken:
            supervisor._hand_over(pairs[0][1])
            (number,) = [number for number, (_, theirs) in enumerate(pairs) if _has_one(theirs)]
            supervisor._closed[number] += ends
            found.append(number)
    assert found == taken


@contextlib.contextmanager
def _pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        theirs.setblocking(False)
        yield ours, theirs


def _has_one(theirs: socket.socket) -> bool:
    """Return True if a process gets a connection, which is closed."""
    try:
        _, descriptors, _, _ = socket.recv_fds(theirs, 100, 1)
    except BlockingIOError:
        return False
    for descriptor in descriptors:
        os.close(descriptor)
    return True


@pytest.mark.parametrize(("lived", "waits"), [(0.5, 1), (1.5, 0)])
def test_a_process_that_died_at_once_is_replaced_a_second_later(
    lived: float, waits: float, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen(["sh", "-c", "exit 3"]) as process, Signals() as signals:
        supervisor = Supervisor(ours, lambda *_: None, 1, signals, drain_seconds=0, unresponsive_seconds=30)
        listener = _Listener(0, process.pid, ours, started=time.monotonic() - lived)
        supervisor._listeners[0] = listener
        supervisor._selector.register(ours, selectors.EVENT_READ, listener)
        theirs.close()
        supervisor._hear(listener, {}, greeted=True)
    assert supervisor._missing[0] - time.monotonic() == pytest.approx(waits, abs=0.3)
    assert not supervisor._listeners
    assert "ended unexpectedly (code 3)" in caplog.text


def test_a_process_that_hangs_has_a_second_to_log_where(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr("os.kill", lambda _, number: told.append(number))
    ours, theirs = socket.socketpair()
    with ours, theirs, Signals() as signals:
        supervisor = Supervisor(ours, lambda *_: None, 1, signals, drain_seconds=0, unresponsive_seconds=0)
        supervisor._listeners[0] = _Listener(0, 4711, theirs, started=0)
        for moment, count in ((0, 0), (0.9, 1), (1.8, 1), (2.0, 2)):
            monkeypatch.setattr("time.monotonic", lambda moment=moment: moment)
            supervisor._end_hung()
            assert len(told) == count
    assert told == [signal.SIGABRT, signal.SIGKILL]
