"""The same batch on a Dask cluster of processes on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import imgsvc_batch
from imgsvc_batch import Event, Summary, cluster
from imgsvc_core import Limits
from imgsvc_core.errors import SourceUnreachable, TargetError, UnsupportedOperation, WorkerDied
from tests.batch.clusters import LOADED, Cluster, cluster_of, workers_of
from tests.batch.pictures import SPEC, fill, results
from tests.support import forked_python, requires
from tests.support.forked_python import ForkedPython

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

COUNT = 60
AS_LARGE = {"output": {"format": "webp"}}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Cluster]:
    with cluster_of(2, tmp_path / "cluster") as running:
        yield running


@pytest.fixture(autouse=True)
def _connecting_ended() -> Iterator[None]:
    """Wait for clients that were given up: they share an event loop with the next one, and end it."""
    yield
    for thread in threading.enumerate():
        if thread.name == "imgsvc-cluster-connect":
            thread.join()


def go(tmp_path: Path, address: str, spec: dict[str, Any] = SPEC, **options: Any) -> Summary:
    return imgsvc_batch.run(tmp_path / "in", tmp_path / "out", {"": spec}, cluster=address, **options)


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
    forgiving: dict[str, Any] = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
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
            added = os.environ.get("PYTHONPATH", "")
            running.settings["PYTHONPATH"] = f"{tmp_path / 'other'}:{added}"
            running.add_worker()
            for worker in running.processes[1:3]:
                worker.send_signal(signal.SIGKILL)
            replaced = True

    with pytest.raises(UnsupportedOperation, match=r"version 0\.0\.1, and this machine .*with resume"):
        go(tmp_path, running.address, on_event=replace)


def bomb(folder: Path) -> None:
    """A drawing that librsvg works on for days, and does not let itself be disturbed."""
    filters = '<feMorphology operator="dilate" radius="100"/>' * 20_000
    (folder / "photo00000bomb.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="3000">'
        f'<filter id="f" x="0" y="0" width="1" height="1">{filters}</filter>'
        '<rect width="3000" height="3000" filter="url(#f)"/></svg>'
    )


def work_on_a_bomb(
    tmp_path: Path, address: str, *, count: int = COUNT, seconds: float = 2
) -> tuple[Summary, list[Event]]:
    fill(tmp_path / "in", count)
    bomb(tmp_path / "in")
    told: list[Event] = []
    summary = go(tmp_path, address, AS_LARGE, on_event=told.append, limits=Limits(seconds=seconds))
    return summary, [event for event in told if event.outcome == "failed"]


@pytest.mark.parametrize(("workers", "nanny"), [(1, True), (2, False)])
def test_a_picture_that_hangs_costs_nothing_but_itself(tmp_path: Path, workers: int, nanny: bool) -> None:
    with cluster_of(workers, tmp_path / "cluster", nanny=nanny) as running:
        before = workers_of(running.address)
        summary, failed = work_on_a_bomb(tmp_path, running.address)
        assert (summary.done, summary.failed) == (COUNT, 1)
        assert [(event.key, event.error) for event in failed] == [
            ("photo00000bomb.svg", "time_limit_exceeded")
        ]
        assert "longer than the 2 seconds" in failed[0].message
        assert len(results(tmp_path / "out")) == COUNT
        assert workers_of(running.address) == before


def test_workers_that_are_threads_of_a_program_work_alike(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from pathlib import Path\n"
        "from distributed import LocalCluster\n"
        "from tests.batch.test_cluster import work_on_a_bomb\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, processes=False, dashboard_address=None) as cluster:\n"
        f"        summary, _ = work_on_a_bomb(Path({str(tmp_path)!r}), cluster.scheduler_address)\n"
        "        print(summary.done, summary.failed, flush=True)\n"
    )
    requires.module("distributed")
    done = forked_python.run(str(program), timeout=120, loaded=LOADED)
    assert done.stdout.split() == [str(COUNT), "1"], done.stderr


def test_an_interrupt_while_a_picture_hangs_waits_for_nothing(tmp_path: Path) -> None:
    with cluster_of(1, tmp_path / "cluster", nanny=True) as running:
        process = begin_with_a_bomb(tmp_path, running)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert out == "interrupted\n", err
        running.processes[1].kill()  # its worker still hangs
        wait_for_no_worker(running)
        running.add_worker(nanny=True)
        running.await_workers(1)
        (tmp_path / "in" / "photo00000bomb.svg").write_text("nothing that hangs")
        assert go(tmp_path, running.address, AS_LARGE, resume=True).failed == 1
        assert len(results(tmp_path / "out")) == 3


def test_a_scheduler_lost_while_a_picture_hangs_is_told(tmp_path: Path) -> None:
    with cluster_of(1, tmp_path / "cluster", nanny=True) as running:
        process = begin_with_a_bomb(tmp_path, running)
        running.processes[0].kill()
        out, err = process.communicate(timeout=60)
        assert out.startswith("The cluster is lost"), err


def wait_for_no_worker(running: Cluster) -> None:
    from distributed import Client

    with Client(running.address) as client:
        while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.workers)):
            time.sleep(0.05)


def begin_with_a_bomb(tmp_path: Path, running: Cluster) -> ForkedPython:
    """A batch whose worker hangs in a picture."""
    from distributed import Client

    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from imgsvc_core.errors import TargetError\n"
        "from tests.batch.test_cluster import work_on_a_bomb\n"
        "try:\n"
        "    summary, _ = work_on_a_bomb(Path(sys.argv[1]), sys.argv[2], count=3, seconds=600)\n"
        "    print('interrupted' if summary.interrupted else 'ended')\n"
        "except TargetError as error:\n"
        "    print(error.message)\n"
    )
    process = forked_python.start("-c", program, str(tmp_path), running.address, loaded=LOADED)
    deadline = time.monotonic() + 60
    with Client(running.address, timeout=120) as client:
        while not any(client.processing().values()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    time.sleep(1)
    return process


CRASHES = """
import os, signal
from imgsvc_batch import work

def crash(job, source, process=work._process):
    if source.read().startswith(b"crash"):
        os.kill(os.getpid(), signal.SIGSEGV)
    return process(job, source)

work._process = crash
"""


def test_a_picture_that_ends_workers_is_named_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "in", COUNT)
    (tmp_path / "in" / "photo00030crash.jpg").write_bytes(b"crash")
    (tmp_path / "crashes").mkdir()
    (tmp_path / "crashes" / "sitecustomize.py").write_text(CRASHES)
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'crashes'}:{os.environ.get('PYTHONPATH', '')}")
    told: list[Event] = []
    with cluster_of(2, tmp_path / "cluster") as running:
        summary = go(tmp_path, running.address, on_event=told.append)
    failed = [(event.key, event.error) for event in told if event.outcome == "failed"]
    assert failed == [("photo00030crash.jpg", "worker_died")]
    assert summary.done == COUNT


def test_a_cluster_that_all_workers_left_is_given_up(
    running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "in", COUNT)
    monkeypatch.setattr(cluster, "WITHOUT_WORKERS_SECONDS", 2)

    def kill(event: Event) -> None:
        for worker in running.processes[1:]:
            worker.kill()

    with pytest.raises(TargetError, match=r"no worker for 2 seconds.*with resume"):
        go(tmp_path, running.address, on_event=kill)


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

    with pytest.raises(TargetError, match=r"lost \(its scheduler is gone\): .* with resume"):
        go(tmp_path, running.address, on_event=kill)
    summary = imgsvc_batch.run(tmp_path / "in", tmp_path / "out", {"": SPEC}, workers=1, resume=True)
    assert summary.failed == 0
    assert len(results(tmp_path / "out")) == COUNT


def test_workers_must_be_alike(running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "in", 3)
    monkeypatch.setattr("imgsvc_core.__version__", "0.0.1")
    with pytest.raises(UnsupportedOperation, match=r"version .* and this machine 0\.0\.1"):
        go(tmp_path, running.address)
    assert not results(tmp_path / "out")


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requires.module("distributed")
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1)
    fill(tmp_path / "in", 1)
    with pytest.raises(SourceUnreachable, match="No scheduler answers at 'tcp://127"):
        go(tmp_path, "tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"", "it said nothing for 2 seconds"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else does"),
        (b"\0" * 64, "something else does"),
    ],
    ids=["nothing", "another protocol", "nonsense"],
)
def test_who_is_no_scheduler_is_named(
    greeting: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requires.module("distributed")
    fill(tmp_path / "in", 1)
    if not greeting:
        monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        connected = threads.submit(server.accept)
        connected.add_done_callback(lambda accepted: accepted.result()[0].sendall(greeting))
        with pytest.raises(SourceUnreachable, match=f"No scheduler answers at 'tcp:.*': {reason}"):
            go(tmp_path, f"tcp://127.0.0.1:{server.getsockname()[1]}")
        connected.result()[0].close()


def test_a_scheduler_that_wants_certificates_is_named(tmp_path: Path) -> None:
    requires.module("distributed")
    fill(tmp_path / "in", 1)
    with pytest.raises(SourceUnreachable, match=r"No scheduler answers at 'tls://.*TLS"):
        go(tmp_path, "tls://127.0.0.1:9")


@pytest.mark.parametrize(("status", "error"), [("running", WorkerDied), ("closed", ConnectionError)])
def test_a_task_that_is_cancelled_lost_its_workers_or_the_scheduler(
    status: str, error: type[Exception]
) -> None:
    class Client:
        async def gather(self, *_: object, **__: object) -> None:
            raise CancelledError

    client = Client()
    client.status = status  # type: ignore[attr-defined]
    answer: Future[Any] = Future()
    asyncio.run(cluster._pass_on(None, answer, client))
    with pytest.raises(error):
        answer.result()
