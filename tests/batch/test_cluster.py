"""The same batch on a Dask cluster of processes on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from imgsvc_core import batch
from imgsvc_core.batch import Event, Summary, cluster
from imgsvc_core.errors import SourceUnreachable, TargetError, UnsupportedOperation
from tests.batch.pictures import SPEC, fill, results
from tests.support import requires

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

COUNT = 350


class Cluster:
    """A scheduler and workers, each a process that can be killed."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.settings = settings
        self.processes: list[subprocess.Popen[bytes]] = []
        self.file = folder / "scheduler.json"
        self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file))
        deadline = time.monotonic() + 60
        while not self.file.exists() or not self.file.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @property
    def address(self) -> str:
        import json

        return str(json.loads(self.file.read_text())["address"])

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny",
            "--local-directory", str(self.folder),
        )  # fmt: skip

    def await_workers(self, count: int) -> None:
        from distributed import Client

        with Client(self.address, timeout=30) as client:
            client.wait_for_workers(count, timeout=60)

    def _start(self, what: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + what, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / f"{what}{len(self.processes)}.log").open("w"),
            env=os.environ | {"PYTHONPATH": os.getcwd()} | self.settings,
        )
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@contextlib.contextmanager
def cluster_of(workers: int, folder: Path, **settings: str) -> Iterator[Cluster]:
    requires.module("distributed")
    folder.mkdir()
    running = Cluster(folder, **settings)
    try:
        for _ in range(workers):
            running.add_worker()
        if workers:
            running.await_workers(workers)
        yield running
    finally:
        running.end()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Cluster]:
    with cluster_of(2, tmp_path / "cluster") as running:
        yield running


def go(tmp_path: Path, address: str, **options: Any) -> Summary:
    return batch.run(tmp_path / "in", tmp_path / "out", {"": SPEC}, cluster=address, **options)


def test_a_cluster_does_the_same(running: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "in", 30)
    (tmp_path / "in" / "broken.jpg").write_bytes(b"broken")
    told: list[Event] = []
    summary = go(tmp_path, running.address, on_event=told.append)
    assert (summary.done, summary.failed) == (30, 1)
    assert [event.error for event in told if event.outcome == "failed"] == ["unsupported_format"]
    assert len(results(tmp_path / "out")) == 30
    again = go(tmp_path, running.address)
    assert (again.done, again.skipped) == (0, 30)


def test_a_lost_worker_costs_nothing(running: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "in", COUNT)
    killed = False

    def kill(event: Event) -> None:
        nonlocal killed
        if not killed:
            running.processes[1].send_signal(signal.SIGKILL)
            killed = True

    summary = go(tmp_path, running.address, on_event=kill)
    assert killed
    assert (summary.done, summary.failed) == (COUNT, 0)
    assert len(results(tmp_path / "out")) == COUNT


def test_inputs_of_a_task_that_killed_workers_are_tried_one_by_one(tmp_path: Path) -> None:
    fill(tmp_path / "in", COUNT)
    forgiving = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with cluster_of(2, tmp_path / "cluster", **forgiving) as running:
        events = 0

        def kill(event: Event) -> None:
            nonlocal events
            events += 1
            if events == 1:
                running.processes[1].send_signal(signal.SIGKILL)

        summary = go(tmp_path, running.address, on_event=kill)
    assert (summary.done, summary.failed) == (COUNT, 0)


def test_all_workers_lost_at_once_and_others_come(running: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "in", COUNT)
    killed = False

    def kill(event: Event) -> None:
        nonlocal killed
        if not killed:
            for worker in running.processes[1:]:
                worker.send_signal(signal.SIGKILL)
            running.add_worker()
            killed = True

    summary = go(tmp_path, running.address, on_event=kill)
    assert (summary.done, summary.failed) == (COUNT, 0)


def test_a_cluster_without_workers_is_told(tmp_path: Path) -> None:
    fill(tmp_path / "in", 1)
    with (
        cluster_of(0, tmp_path / "cluster") as running,
        pytest.raises(UnsupportedOperation, match="no workers"),
    ):
        go(tmp_path, running.address)


def test_workers_without_the_library_are_told(tmp_path: Path) -> None:
    fill(tmp_path / "in", 1)
    (tmp_path / "shadow" / "imgsvc_core").mkdir(parents=True)
    (tmp_path / "shadow" / "imgsvc_core" / "__init__.py").write_text("raise ImportError('nothing here')")
    with (
        cluster_of(1, tmp_path / "cluster", PYTHONPATH=str(tmp_path / "shadow")) as running,
        pytest.raises(UnsupportedOperation, match="cannot work on pictures"),
    ):
        go(tmp_path, running.address)


def test_workers_that_come_later_must_be_alike_too(running: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "in", COUNT)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(
        "import imgsvc_core\nimgsvc_core.__version__ = '0.0.1'\n"
    )
    replaced = False

    def replace(event: Event) -> None:
        nonlocal replaced
        if not replaced:
            running.settings["PYTHONPATH"] = str(tmp_path / "other")
            running.add_worker()
            for worker in running.processes[1:3]:
                worker.send_signal(signal.SIGKILL)
            replaced = True

    with pytest.raises(UnsupportedOperation, match=r"version 0\.0\.1, and this machine .*--resume"):
        go(tmp_path, running.address, on_event=replace)


def test_an_interrupt_lets_the_cluster_go(running: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "in", COUNT)

    def interrupt(event: Event) -> None:
        raise KeyboardInterrupt

    assert go(tmp_path, running.address, on_event=interrupt).interrupted
    assert go(tmp_path, running.address, resume=True).failed == 0
    assert len(results(tmp_path / "out")) == COUNT


def test_after_a_lost_scheduler_it_goes_on(running: Cluster, tmp_path: Path) -> None:
    fill(tmp_path / "in", COUNT)

    def kill(event: Event) -> None:
        running.processes[0].send_signal(signal.SIGKILL)

    with pytest.raises(TargetError, match="--resume"):
        go(tmp_path, running.address, on_event=kill)
    summary = batch.run(tmp_path / "in", tmp_path / "out", {"": SPEC}, workers=1, resume=True)
    assert summary.failed == 0
    assert len(results(tmp_path / "out")) == COUNT


def test_workers_must_be_alike(running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "in", 3)
    ours = cluster.facts()
    monkeypatch.setattr("imgsvc_core.__version__", "0.0.1")
    assert cluster.facts() != ours
    with pytest.raises(UnsupportedOperation, match=r"version .* and this machine 0\.0\.1"):
        go(tmp_path, running.address)
    assert not results(tmp_path / "out")


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path) -> None:
    requires.module("distributed")
    fill(tmp_path / "in", 1)
    with pytest.raises(SourceUnreachable, match="No scheduler answers at 'tcp://127"):
        go(tmp_path, "tcp://127.0.0.1:9")
