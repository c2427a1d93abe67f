"""Dask clusters of processes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support import forked_python, requires
from tests.support.forked_python import ForkedPython

LOADED = "distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "imgsvc_batch.cluster"


class Cluster:
    """A scheduler and workers, each a process that can be killed."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.settings = settings
        self.processes: list[subprocess.Popen[bytes] | ForkedPython] = []
        self.file = folder / "scheduler.json"
        self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file))
        deadline = time.monotonic() + 60
        while not self.file.exists() or not self.file.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def add_worker(self, *, nanny: bool = False) -> None:
        self._start(
            "worker", self.address, "--nthreads", "1", "--no-dashboard", "--nanny" if nanny else "--no-nanny",
            "--local-directory", str(self.folder),
        )  # fmt: skip

    def await_workers(self, count: int) -> None:
        from distributed import Client

        with Client(self.address, timeout=120) as client:
            client.wait_for_workers(count, timeout=120)

    def _start(self, what: str, *arguments: str) -> None:
        log = self.folder / f"{what}{len(self.processes)}.log"
        environment = os.environ | self.settings
        if "PYTHONPATH" not in self.settings:
            code = f"import dask; dask.config.refresh()\nfrom distributed.cli.dask_{what} import main\nmain()"
            command = ["-c", code, *arguments]
            self.processes.append(forked_python.start(*command, environment=environment, loaded=LOADED))
            return
        with log.open("w") as errors:
            command = [sys.executable, "-m", "distributed.cli.dask_" + what, *arguments]
            self.processes.append(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
            )

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()  # a worker goes when its nanny does
            process.wait()


@contextlib.contextmanager
def cluster_of(workers: int, folder: Path, *, nanny: bool = False, **settings: str) -> Iterator[Cluster]:
    requires.module("distributed")
    folder.mkdir()
    running = Cluster(folder, **settings)
    try:
        for _ in range(workers):
            running.add_worker(nanny=nanny)
        if workers:
            running.await_workers(workers)
        yield running
    finally:
        running.end()


def workers_of(address: str) -> set[str]:
    from distributed import Client

    with Client(address, timeout=120) as client:
        return set(client.nthreads())
