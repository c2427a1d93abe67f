"""How inputs are put together to tasks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from imgsvc_batch import Batch, Event
from imgsvc_batch.work import Task, inputs_per_task, run_tasks
from tests.batch.pictures import SPEC, fill


@pytest.mark.parametrize(
    ("source", "seconds_each", "expected"),
    [
        ("in", 0.001, 100),  # many, as handing them out costs too
        ("in", 0.1, 20),
        ("in", 30.0, 2),  # few, so that what is done is known soon
        ("memory://in", 30.0, 32),  # as many as are read at a time, and again
        ("in", 0.0, 100),
    ],
)
def test_a_task_takes_about_as_long_as_it_should(source: str, seconds_each: float, expected: int) -> None:
    job = Batch(source=source, target="out", variants={"": SPEC}).job()
    events = [Event(key=str(number), outcome="done", bytes=1, seconds=seconds_each) for number in range(10)]
    assert inputs_per_task(job, events, seconds=2.0, most=100) == expected


def test_a_task_of_many_inputs_tells_of_each_in_order_whatever_they_have_become(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    names = fill(source, 40)
    (source / names[3]).unlink()
    (source / names[20]).unlink()
    os.mkfifo(source / names[20])
    threading.Thread(target=(source / names[20]).write_bytes, args=[b"no picture"], daemon=True).start()
    job = Batch(source=source, target=target, variants={"": SPEC}).job()
    tasks = tuple(Task(key=name, location=str(source / name), size=1) for name in names)
    events = run_tasks(job, tasks)
    assert [event.key for event in events] == names
    assert [event.key for event in events if event.outcome != "done"] == [names[3], names[20]]
    written = {output.path: output.bytes for event in events for output in event.outputs}
    assert written == {path: (target / path).stat().st_size for path in written}
    assert len(written) == 38
