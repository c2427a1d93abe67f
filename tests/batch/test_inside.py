"""Batches of places in memory, whose work is done by threads of this process."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest

import imgsvc_batch
from imgsvc_batch import Event, work
from imgsvc_batch.journal import Journal
from imgsvc_core.bytesource import ByteSource
from imgsvc_core.errors import TargetError
from tests.batch.pictures import SPEC
from tests.support import encoded

QUICK = 3


def test_an_interrupt_waits_for_no_picture_and_forgets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One picture takes its time. What is told as done is what is there, now and later."""
    fs = fsspec.filesystem("memory")
    source, target = f"memory://{tmp_path.name}/in", f"memory://{tmp_path.name}/out"
    for number in range(QUICK):
        fs.pipe_file(f"{source}/{number}.jpg", encoded.jpeg().data)
    fs.pipe_file(f"{source}/slow.png", encoded.png().data)
    begun, released, compute = threading.Event(), threading.Event(), work._results

    def slowly(job: work.Job, picture: ByteSource) -> Any:
        if (picture.name or "").endswith("slow.png"):
            begun.set()
            released.wait(20)
        return compute(job, picture)

    monkeypatch.setattr(work, "_results", slowly)
    told: list[Event] = []

    def interrupt(event: Event) -> None:
        told.append(event)
        if len(told) == QUICK:
            assert begun.wait(20)
            signal.raise_signal(signal.SIGINT)

    manifest = tmp_path / "manifest.sqlite"
    summary = imgsvc_batch.run(source, target, {"": SPEC}, workers=2, manifest=manifest, on_event=interrupt)
    assert summary.interrupted
    assert summary.done == len(fs.find(target)) == QUICK
    released.set()
    for thread in threading.enumerate():
        if thread.name.startswith("imgsvc-batch"):
            thread.join(20)
    assert len(fs.find(target)) == QUICK
    again = imgsvc_batch.run(source, target, {"": SPEC}, workers=2, manifest=manifest, resume=True)
    assert (again.done, again.failed) == (1, 0)


def test_an_interrupt_ends_the_telling_of_what_no_manifest_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk is full, and millions of inputs may be told to have failed for that."""
    source = f"memory://{tmp_path.name}/in"
    for number in range(20):
        fsspec.filesystem("memory").pipe_file(f"{source}/{number}.jpg", encoded.jpeg().data)

    def full(*_: object, **__: object) -> None:
        raise TargetError("Manifest cannot be written: database or disk is full.")

    told: list[Event] = []

    def interrupt(event: Event) -> None:
        told.append(event)
        if len(told) == 5:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "waiting", full)
        summary = imgsvc_batch.run(source, tmp_path / "out", {"": SPEC}, workers=1, on_event=interrupt)
    assert (summary.interrupted, summary.failed, len(told)) == (True, 5, 5)
    assert imgsvc_batch.run(source, tmp_path / "out", {"": SPEC}, workers=1, resume=True).done == 20
