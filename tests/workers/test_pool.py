"""A pool survives whatever its tasks do, and says what became of each."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from imgsvc_core._runtime.forkserver import Forkserver
from imgsvc_core._runtime.workers import WorkerPool
from imgsvc_core.errors import MachineFailed, MemoryLimitExceeded, SpecError, TimeLimitExceeded, WorkerDied
from tests.support.processes import kill, kill_worker, workers_of
from tests.workers import tasks


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(1, memory_bytes=1_000_000_000) as pool:
        yield pool


def alive(pool: WorkerPool) -> bool:
    return pool.submit(tasks.echo, "still there").result(timeout=60) == "still there"


def await_end(process: int) -> None:
    """Wait until a process has ended, also one that nobody has collected."""
    deadline = time.monotonic() + 60
    with contextlib.suppress(OSError):
        while Path(f"/proc/{process}/cmdline").read_bytes():
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_work_is_done_in_another_process(pool: WorkerPool) -> None:
    assert pool.submit(tasks.process_id).result() != os.getpid()


@pytest.mark.parametrize("name", ["uwsgi", "python-app"])
def test_programs_that_embed_python_have_workers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own executable is no interpreter: started for a worker, it would be the program once more."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / name))
    with WorkerPool(1) as pool:
        assert alive(pool)


def test_frozen_programs_are_told_that_they_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyInstaller's programs have no interpreter at all."""
    (tmp_path / "python-app").write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python-app"))
    monkeypatch.setattr(sys, "exec_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(RuntimeError, match="need a Python interpreter, and this program has none"):
        WorkerPool(1)


def test_errors_come_back_whole(pool: WorkerPool) -> None:
    with pytest.raises(SpecError) as caught:
        pool.submit(tasks.refuse).result()
    assert [problem.path for problem in caught.value.problems] == ["resize.width", "rotate"]
    assert alive(pool)


def test_the_kernel_would_end_a_worker_rather_than_its_parent(pool: WorkerPool) -> None:
    own = int(Path("/proc/self/oom_score_adj").read_text())
    pool.submit(tasks.echo, "begun").result()
    assert [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in workers_of(os.getpid())] == [
        own + 300
    ]


def test_a_crash_costs_one_task(pool: WorkerPool) -> None:
    with pytest.raises(WorkerDied, match="died"):
        pool.submit(tasks.crash).result()
    assert alive(pool)


def test_work_whose_process_is_ended_from_outside_is_done_again(pool: WorkerPool, tmp_path: Path) -> None:
    assert pool.submit(tasks.be_killed, 2, tmp_path / "passing").result(timeout=60) == 3
    always = tmp_path / "always"
    with pytest.raises(MachineFailed, match="no fault of the picture"):
        pool.submit(tasks.be_killed, 99, always).result(timeout=60)
    assert always.stat().st_size == 3
    assert alive(pool)


def test_memory_has_an_end(pool: WorkerPool) -> None:
    assert pool.submit(tasks.hold, 100_000_000).result() == 100_000_000
    with pytest.raises(MemoryLimitExceeded, match="ran out of memory: ask for a smaller size"):
        pool.submit(tasks.hold, 2_000_000_000).result()
    assert alive(pool)


def test_a_process_that_cannot_allocate_is_told_as_such(pool: WorkerPool) -> None:
    with pytest.raises(MemoryLimitExceeded, match="send a smaller image"):
        pool.submit(tasks.end_like_glib).result()
    assert alive(pool)


def test_a_crash_is_told_as_a_lack_of_memory_if_the_work_may_need_more(pool: WorkerPool) -> None:
    with pytest.raises(MemoryLimitExceeded, match="ran out of memory"):
        pool.submit(tasks.crash_if_short, 2_000_000_000, True).result()
    with pytest.raises(WorkerDied):
        pool.submit(tasks.crash_if_short, 1, True).result()
    pool.submit(tasks.crash_if_short, 2_000_000_000, False).result()
    with pytest.raises(WorkerDied):
        pool.submit(tasks.crash).result()


def test_time_has_an_end(pool: WorkerPool, tmp_path: Path) -> None:
    worker, written = pool.submit(tasks.process_id).result(), tmp_path / "late"
    with pytest.raises(TimeLimitExceeded, match=r"0\.5 seconds"):
        pool.submit(tasks.wait_and_write, 600, written, seconds=0.5).result()
    assert alive(pool)
    await_end(worker)
    assert not written.exists()


def test_a_worker_stops_a_picture_by_itself_and_goes_on(pool: WorkerPool) -> None:
    worker = pool.submit(tasks.process_id).result()
    assert pool.submit(tasks.process_slowly, 3600, 0.1).result() == worker
    for _ in range(2):
        ended = pool.submit(tasks.process_endlessly, 0.3, seconds=20)
        assert ended.result(timeout=60) == (worker, TimeLimitExceeded.slug)
        assert pool.submit(tasks.process_slowly, 3600, 0.6).result() == worker


def test_a_codec_that_cannot_be_stopped_is_ended_with_its_worker(pool: WorkerPool) -> None:
    before = pool.submit(tasks.process_id).result()
    with pytest.raises(TimeLimitExceeded, match="the 2 seconds that"):
        pool.submit(tasks.encode_slowly, 2, seconds=2, grace=1).result(timeout=60)
    assert pool.submit(tasks.process_id).result() != before
    await_end(before)


def test_a_cancelled_task_stops(pool: WorkerPool, tmp_path: Path) -> None:
    worker, begun, written = pool.submit(tasks.process_id).result(), tmp_path / "begun", tmp_path / "unwanted"
    running = pool.submit(tasks.wait_and_write, 600, written, begun)
    while not begun.exists():
        time.sleep(0.01)
    assert running.cancel()
    with pytest.raises(CancelledError):
        running.result()
    assert alive(pool)
    await_end(worker)
    assert not written.exists()


def test_workers_that_die_before_they_begin_are_replaced() -> None:
    known = workers_of(os.getpid())
    with WorkerPool(1) as pool:
        waiting = [pool.submit(tasks.echo, number) for number in range(20)]
        kill_worker(os.getpid(), known=known)
        assert [answer.result(timeout=60) for answer in waiting] == list(range(20))


def test_workers_that_die_while_nothing_is_to_do_are_replaced() -> None:
    with WorkerPool(1) as pool:
        worker = pool.submit(tasks.process_id).result(timeout=60)
        for _ in range(2):
            kill(worker)
            time.sleep(0.5)
            assert alive(pool)
            worker = pool.submit(tasks.process_id).result(timeout=60)


def test_workers_that_always_die_before_they_begin_are_told() -> None:
    with WorkerPool(1, memory_bytes=1) as pool, pytest.raises(MachineFailed, match="before they begin"):
        pool.submit(tasks.echo, 1).result(timeout=60)


def test_formats_outside_the_table_are_not_touched(pool: WorkerPool, tmp_path: Path) -> None:
    path = tmp_path / "picture.ppm"
    path.write_bytes(b"P6 1 1 255 abc")
    with pytest.raises(Exception, match=r"operation is blocked|not a known file format"):
        pool.submit(tasks.load_unlisted, str(path)).result()


def test_closing_waits_and_stopping_does_not(tmp_path: Path) -> None:
    with WorkerPool(1) as pool:
        pool.submit(tasks.wait_and_write, 0.5, tmp_path / "finished")
    assert (tmp_path / "finished").exists()
    pool = WorkerPool(1)
    pool.submit(tasks.wait_and_write, 30, tmp_path / "never")
    started = time.monotonic()
    pool.stop()
    pool.stop()
    assert time.monotonic() - started < 20
    assert not (tmp_path / "never").exists()


def test_stopping_ends_all_processes_at_the_same_time(tmp_path: Path) -> None:
    """One after the other, each of these would be waited for until it is killed, after three seconds."""
    pool = WorkerPool(3)
    begun = [tmp_path / str(number) for number in range(3)]
    for path in begun:
        pool.submit(tasks.be_deaf, path)
    while not all(path.exists() for path in begun):
        time.sleep(0.05)
    started = time.monotonic()
    pool.stop()
    assert time.monotonic() - started < 9


def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "from imgsvc_core._runtime.workers import WorkerPool\nfrom tests.workers import tasks\nimport time\n"
        "if __name__ == '__main__':\n    pool = WorkerPool(1)\n"
        "    print(pool.submit(tasks.process_id).result(), flush=True)\n    time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    await_end(worker)


def test_workers_end_with_a_parent_that_is_killed() -> None:
    code = (
        "import time\n"
        "from imgsvc_core._runtime.workers import WorkerPool\n"
        "from tests.workers import tasks\n"
        "if __name__ == '__main__':\n"
        "    pool = WorkerPool(1)\n"
        "    print(pool.submit(tasks.process_id).result(), flush=True)\n"
        "    pool.submit(time.sleep, 100).result()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    time.sleep(0.5)  # it sleeps by now
    parent.kill()
    parent.communicate()
    await_end(worker)


def test_commands_with_one_thread_fork_themselves(tmp_path: Path) -> None:
    """Their workers have the loaded library, but no file of theirs. With threads, a fork might hang."""
    code = (
        "import sys, threading, time\n"
        "from imgsvc_core._runtime.forkserver import forking_this_process\n"
        "from imgsvc_core._runtime.workers import WorkerPool\n"
        "from tests.workers import tasks\n"
        "def shown():\n"
        "    with WorkerPool(1, memory_bytes=1_000_000_000, preloads=False) as pool:\n"
        "        command, files = pool.submit(tasks.command_and_files).result()\n"
        "        print(command == tasks.command_and_files()[0], sys.argv[1] in files, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    file = open(sys.argv[1], 'w')\n"
        "    with forking_this_process():\n"
        "        shown()\n"
        "        threading.Thread(target=time.sleep, args=[100], daemon=True).start()\n"
        "        shown()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "own")],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # the tests load NumPy, whose threads commands lack
    )
    assert ran.stdout.splitlines() == ["True False", "False False"]


def test_a_limit_that_is_lower_already_stays() -> None:
    lower = 3 * 2**30
    code = (
        "import resource\n"
        "from imgsvc_core._runtime.workers import WorkerPool\n"
        "if __name__ == '__main__':\n"
        f"    resource.setrlimit(resource.RLIMIT_DATA, ({lower}, {lower}))\n"
        f"    with WorkerPool(1, memory_bytes={2 * lower}) as pool:\n"
        "        print(pool.submit(resource.getrlimit, resource.RLIMIT_DATA).result())\n"
    )
    told = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert told == f"({lower}, {lower})\n"


def test_functions_that_cannot_be_sent_are_named(pool: WorkerPool) -> None:
    with pytest.raises(TypeError, match=r"Function '.*<lambda>' and its arguments must be picklable"):
        pool.submit(lambda: 1)
    with pytest.raises(TypeError, match=r"Function 'echo' and its arguments must be picklable .*lock"):
        pool.submit(tasks.echo, threading.Lock())
    assert alive(pool)


SCRIPT = """
import sys
from functools import partial
from imgsvc_core import WorkerPool
from tests.workers import tasks

def own(): return 1
class Own: pass

if __name__ == "__main__":
    with WorkerPool(1) as pool:
        for function, *arguments in [(own,), (partial(own),), (lambda: 1,), (tasks.echo, Own())]:
            try:
                print(pool.submit(function, *arguments).result(timeout=60))
            except TypeError as error:
                print(error)
        print(pool.submit(tasks.echo, "still there").result(timeout=60))
"""


def test_functions_and_classes_of_the_script_are_named(tmp_path: Path) -> None:
    lines = _run(tmp_path, SCRIPT).stdout.splitlines()
    of_script = "must be one of a module that worker processes can import, got one of the script itself"
    assert [of_script in line for line in lines[:3]] == [True] * 3
    assert "A worker process cannot read a function or its arguments: " in lines[3]
    assert "attribute 'Own'" in lines[3]
    assert lines[4] == "still there"


UNGUARDED = """
from imgsvc_core import WorkerPool

def one(): return 1

pool = WorkerPool(1, modules=MODULES)
import script
try:
    print(pool.submit(script.one).result(timeout=60))
except (TypeError, ImportError) as error:
    print(error)
pool.close()
"""


@pytest.mark.parametrize("modules", [[], ["script"]])
def test_a_missing_guard_of_the_main_module_is_named(modules: list[str], tmp_path: Path) -> None:
    done = _run(tmp_path, UNGUARDED.replace("MODULES", repr(modules)))
    assert "begin it under `if __name__ == '__main__':`" in done.stdout, done.stdout + done.stderr
    assert "memory" not in done.stdout


def test_a_module_that_cannot_be_imported_is_named() -> None:
    with (
        WorkerPool(1, modules=["no_such_module"]) as pool,
        pytest.raises(ImportError, match=r"Module 'no_such_module' cannot be imported in worker processes"),
    ):
        pool.submit(tasks.echo, 1).result(timeout=60)


def _run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])}
    command = [sys.executable, "script.py"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_fork_server_that_dies_with_unread_messages_is_the_machines_failure() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    ours.send(b"unread")
    theirs.close()
    with pytest.raises(MachineFailed):
        asyncio.run(Forkserver(ours, None).ready())
