"""Batches of places in memory, whose work is done by threads of this process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import fsspec
import pytest

import imgsvc_batch
from imgsvc_batch import Event, work
from imgsvc_core.formats.bytesource import ByteSource
from tests.batch.pictures import SPEC
from tests.support import encoded

QUICK = 3


def test_an_interrupt_waits_for_no_picture_and_forgets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One picture takes its time."""
    fs = fsspec.filesystem("memory")
    source, target = f"memory://{tmp_path.name}/in", f"memory://{tmp_path.name}/out"
    for number in range(QUICK):
        fs.pipe_file(f"{source}/{number}.jpg", encoded.jpeg().data)
    fs.pipe_file(f"{source}/slow.png", encoded.png().data)
    begun, released, compute = threading.Event(), threading.Event(), work._process

    def slowly(job: work.Job, picture: ByteSource) -> Any:
        if (picture.name or "").endswith("slow.png"):
            begun.set()
            released.wait(60)
        return compute(job, picture)

    monkeypatch.setattr(work, "_process", slowly)
    told: list[Event] = []

    def interrupt(event: Event) -> None:
        told.append(event)
        if len(told) == QUICK:
            assert begun.wait(60)
            raise KeyboardInterrupt

    manifest = tmp_path / "manifest.sqlite"
    summary = imgsvc_batch.run(source, target, {"": SPEC}, workers=2, manifest=manifest, on_event=interrupt)
    assert summary.interrupted
    assert summary.done == len(fs.find(target)) == QUICK
    released.set()
    for thread in threading.enumerate():
        if thread.name.startswith("imgsvc-batch"):
            thread.join(20)
    again = imgsvc_batch.run(source, target, {"": SPEC}, workers=2, manifest=manifest, resume=True)
    assert (again.done, again.failed) == (1, 0)
