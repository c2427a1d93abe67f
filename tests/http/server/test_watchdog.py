"""The silence of listening processes, with the time of the parent as it passes or jumps."""

from __future__ import annotations

import asyncio

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


def test_many_looks_in_a_second_count_it_once() -> None:
    watchdog = Watchdog(1, 10)
    for hundredth in range(0, 1000, 5):
        watchdog.look(hundredth / 100)
    assert not watchdog.hangs(0)
    assert watchdog.is_late(0)
