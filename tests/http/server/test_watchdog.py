"""The silence of listening processes, with the time of the parent as it passes or jumps."""

from __future__ import annotations

import asyncio
import signal
import socket

import pytest

from imgsvc_http.server.supervisor import Signals, Supervisor, _Listener
from imgsvc_http.server.watchdog import Watchdog


async def _beat(watchdog: Watchdog, number: int) -> None:
    watchdog.beat(number)


def test_a_process_that_stays_silent_hangs_and_another_one_does_not() -> None:
    watchdog = Watchdog(2, 10)
    for second in range(12):
        asyncio.run(_beat(watchdog, 1))
        watchdog.look(second)
        assert [watchdog.is_late(0), watchdog.is_late(1)] == [second > 2, False]
        assert [watchdog.hangs(0), watchdog.hangs(1)] == [second > 10, False]


def test_a_new_process_starts_without_the_silence_of_the_one_before() -> None:
    watchdog = Watchdog(1, 3)
    for second in range(6):
        watchdog.look(second)
    assert watchdog.hangs(0)
    watchdog.restart(0)
    assert not watchdog.hangs(0)
    assert not watchdog.is_late(0)


def test_time_in_which_the_parent_did_not_look_hardly_counts() -> None:
    """The machine was suspended, or so busy that the parent had no turn either."""
    watchdog = Watchdog(1, 10)
    watchdog.look(0)
    for moment in (1000, 2000, 3000):
        watchdog.look(moment)
        assert not watchdog.hangs(0)


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


def test_many_looks_in_a_second_count_it_once() -> None:
    watchdog = Watchdog(1, 10)
    for hundredth in range(0, 1000, 5):
        watchdog.look(hundredth / 100)
    assert not watchdog.hangs(0)
    assert watchdog.is_late(0)
