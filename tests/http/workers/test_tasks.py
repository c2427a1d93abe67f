"""What a worker does with a picture, without a worker."""

from __future__ import annotations

import errno
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from imgsvc_core.limits import Limits
from imgsvc_core.spec import Spec, parse
from imgsvc_http.settings.sections import ServiceLimits
from imgsvc_http.workers.tasks import Process
from tests.support import encoded

_RUN_IN_FRESH_WORKERS = """
import os, pickle, sys
import imgsvc_core._runtime.worker_process
from imgsvc_core._runtime.worker_setup import preload
preload()
import imgsvc_http.workers.tasks
loaded = set(sys.modules)
tasks, source = pickle.load(sys.stdin.buffer)
for task in tasks:
    if os.fork() == 0:
        task.run(source, 1)
        print(*sorted(set(sys.modules) - loaded), flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_result_is_written_to_its_target(tmp_path: Path) -> None:
    task = Process(name="a.png", spec=Spec(), limits=Limits(), target=str(tmp_path / "name"))
    outcome = task.run(encoded.png().data, 1)
    assert outcome.facts["written"] == 0
    assert outcome.facts["timing"]["store"] >= 0
    assert [file.name for file in tmp_path.iterdir()] == ["name.png"]
    assert (tmp_path / "name.png").read_bytes() == outcome.data


def test_the_time_of_writing_is_told_in_milliseconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_slowly(path: Path, data: bytes) -> int:
        time.sleep(0.05)
        return len(data)

    monkeypatch.setattr(Path, "write_bytes", write_slowly)
    task = Process(name="a.png", spec=Spec(), limits=Limits(), target=str(tmp_path / "name"))
    started = time.perf_counter()
    outcome = task.run(encoded.png().data, 1)
    assert 50 <= outcome.facts["timing"]["store"] <= 1000 * (time.perf_counter() - started)


def test_a_result_that_cannot_be_written_is_told_by_the_number_of_the_error(tmp_path: Path) -> None:
    task = Process(name="a.png", spec=Spec(), limits=Limits(), target=str(tmp_path / "missing" / "name"))
    assert task.run(encoded.png().data, 1).facts["written"] == errno.ENOENT
    (tmp_path / "name.png").symlink_to("/dev/full")
    task = Process(name="a.png", spec=Spec(), limits=Limits(), target=str(tmp_path / "name"))
    assert task.run(encoded.png().data, 1).facts["written"] == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_a_fresh_worker_imports_nothing_for_its_first_picture() -> None:
    specs = [
        parse({"resize": {"width": 4}, "output": {"format": format}})
        for format in ("jpg", "png", "webp", "gif")
    ]
    tasks = [Process(name="a.jpg", spec=spec, limits=ServiceLimits(seconds=9)) for spec in specs]
    done = subprocess.run(
        [sys.executable, "-c", _RUN_IN_FRESH_WORKERS],
        input=pickle.dumps((tasks, encoded.jpeg().data)),
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().splitlines() == ["", "", "", ""]
    assert {task.limits.seconds for task in tasks} == {9}
