"""Phases are noted for the request whose task they run in."""

from __future__ import annotations

import asyncio

import pytest

from imgsvc_http.monitoring.phases import begin_phases, note_phases, phase


@pytest.mark.asyncio
async def test_phases_are_those_of_the_task_and_of_tasks_that_it_starts() -> None:
    async def request(seconds: float) -> dict[str, float]:
        phases = begin_phases()
        note_phases({"fetch": 1000 * seconds})
        await asyncio.sleep(0)
        await asyncio.create_task(asyncio.to_thread(note_phases, {"fetch": 1000 * seconds}))
        return phases

    found = await asyncio.gather(asyncio.create_task(request(1)), asyncio.create_task(request(2)))
    assert found == [{"fetch": 2}, {"fetch": 4}]


@pytest.mark.asyncio
async def test_a_phase_that_fails_is_noted() -> None:
    phases = begin_phases()
    with pytest.raises(ValueError, match="wrong"), phase("store"):
        raise ValueError("wrong")
    assert list(phases) == ["store"]


def test_a_phase_outside_of_requests_is_left_aside() -> None:
    note_phases({"store": 1000.0})
