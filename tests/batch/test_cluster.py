"""The same batch on a Dask cluster of processes on this machine."""

from __future__ import annotations

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

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Cluster]:
    requires.module("distributed")
    (tmp_path / "cluster").mkdir()
    running = Cluster(tmp_path / "cluster")
    try:
        running.add_worker()
        running.add_worker()
        running.await_workers(2)
        yield running
    finally:
        running.end()


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
