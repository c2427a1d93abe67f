"""How inputs are put together to tasks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import attrs
import fsspec
import pytest

from imgsvc_batch import Batch, Event
from imgsvc_batch.cluster import ClusterExecutor
from imgsvc_batch.runner import inputs_per_task
from imgsvc_batch.work import Task, TaskResult, run_tasks
from tests.batch.pictures import SPEC, VARIANTS, fill
from tests.support import encoded


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
    job = Batch(source=source, target="out", variants={"": SPEC}).read_job()
    event = Event(key="a", outcome="done", bytes=1, seconds=seconds_each)
    assert inputs_per_task(job, [TaskResult(event)] * 10, ClusterExecutor) == expected


def test_inputs_that_cross_a_network_have_more_time() -> None:
    batches = [Batch(source=source, target="out", variants={"": SPEC}) for source in ("in", "memory://in")]
    local, remote = (batch.read_job() for batch in batches)
    assert local.grace(1) < local.grace(3) < remote.grace(3)


def test_reading_the_index_of_an_archive_is_no_time_of_a_picture() -> None:
    plain, packed = (
        Batch(source=source, target="out", variants={"": SPEC}).read_job().grace(1)
        for source in ("in", "zip://::in.zip")
    )
    assert packed > 10 * plain


def test_a_task_of_many_inputs_tells_of_each_in_order_whatever_they_have_become(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    names = fill(source, 40)
    (source / names[3]).unlink()
    (source / names[20]).unlink()
    os.mkfifo(source / names[20])
    threading.Thread(target=(source / names[20]).write_bytes, args=[b"no picture"], daemon=True).start()
    job = Batch(source=source, target=target, variants={"": SPEC}).read_job()
    tasks = tuple(Task(key=name, location=str(source / name), size=1) for name in names)
    Path(job.staging_folder).mkdir(parents=True)
    outcomes = run_tasks(job, tasks)
    events = [outcome.event for outcome in outcomes]
    assert [event.key for event in events] == names
    assert [event.key for event in events if event.outcome != "done"] == [names[3], names[20]]
    assert events[0].bytes == (source / names[0]).stat().st_size, "the size that was read, not that of a list"
    for outcome in outcomes:
        made = [output.bytes for output in outcome.event.outputs]
        assert made == [Path(file).stat().st_size for file in outcome.staged.values()]
    assert len(list(Path(job.staging_folder).iterdir())) == 38


def test_what_has_no_place_takes_back_only_what_it_wrote_itself(tmp_path: Path) -> None:
    source, fs = tmp_path / "in.png", fsspec.filesystem("memory")
    source.write_bytes(encoded.png().data)
    job = Batch(source=source, target=f"memory://{tmp_path.name}", variants=VARIANTS).read_job()
    task = Task(key="in.png", location=str(source), size=1)
    (made,) = run_tasks(job, [task])
    first, *_, last = (f"/{tmp_path.name}/{output.path}" for output in made.event.outputs)
    fs.pipe_file(last, b"of somebody else")
    for is_there in (True, False):
        if not is_there:
            fs.rm_file(first)
        (refused,) = run_tasks(job, [task])
        assert (refused.event.outcome, fs.exists(first)) == ("failed", is_there)
    fs.pipe_file(first, b"an earlier result")
    own = frozenset({made.event.outputs[0].path})
    (refused,) = run_tasks(job, [attrs.evolve(task, owned=own)])
    assert (refused.event.outcome, fs.exists(first)) == ("failed", True)
