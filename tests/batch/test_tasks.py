"""How inputs are put together to tasks."""

from __future__ import annotations

import pytest

from imgsvc_core.batch import Batch, Event
from imgsvc_core.batch.work import inputs_per_task
from tests.batch.pictures import SPEC


@pytest.mark.parametrize(
    ("source", "seconds_each", "expected"),
    [
        ("in", 0.001, 100),  # many, as handing them out costs too
        ("in", 0.1, 40),  # two are in hand at a time
        ("in", 30.0, 4),  # few, so that what is done is known soon
        ("memory://in", 30.0, 32),  # as many as are read at a time, and again
        ("in", 0.0, 100),
    ],
)
def test_a_task_takes_about_as_long_as_it_should(source: str, seconds_each: float, expected: int) -> None:
    job = Batch(source=source, target="out", variants={"": SPEC}).job()
    events = [Event(key=str(number), outcome="done", bytes=1, seconds=seconds_each) for number in range(10)]
    assert inputs_per_task(job, events, seconds=2.0, most=100) == expected
