"""What to size a machine by: requests per second, CPU and memory of the service, by megapixels.

JPEGs of several sizes become JPEGs that are 720 pixels wide. They are uploaded over TLS by wrk (from Debian)
over eight connections, on the same two cores. Memory is the proportional set size (PSS) of all processes of
the service, the largest that was seen.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.harness import Bound, print_table, verdict, write_table
from benchmarks.peers import CORES, cpu_seconds, processes_of
from benchmarks.pictures import picture
from benchmarks.service import client, form, service, upload_load

MARKS = ("<!-- sizing -->", "<!-- /sizing -->")
COLUMNS = ("picture", "megapixels", "requests a second", "CPU ms a request", "memory in MB")
SOURCES = {"2mp.jpg": 2, "6mp.jpg": 6, "12mp.jpg": 12, "100mp.jpg": 100}
_ROUNDS = 3
_SECONDS = 8
_IDLE_SECONDS = 20
_IDLE_MEGABYTES = 150
_IDLE_PERCENT = 1
_SECOND_MEGABYTES = 40
_READY_SECONDS = 1.5
_FIRST = 3  # times a later request
_STARTS = 5
_LATER = 9  # requests that the first one is compared with


def main(page: str = "") -> int:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        starts = [started(folder / f"start{number}") for number in range(_STARTS)]
        (folder / "second").mkdir()
        with service(folder / "second", server__processes=2) as running:
            second = memory(running.pid)
        running = stack.enter_context(service(folder))
        idle, polling = memory(running.pid), idle_percent(running.pid)
        rows = [("idle", "–", "–", "–", f"{idle:.0f}")]
        for name, megapixels in SOURCES.items():
            body = form(picture(name).read_bytes())
            with peaks_of(partial(memory, running.pid)) as peaks:
                loads = [upload_load(running, body, _SECONDS) for _ in range(_ROUNDS)]
            rate = statistics.median(load.rate for load in loads)
            cost = statistics.median(load.cpu for load in loads)
            rows.append((name, f"{megapixels}", f"{rate:.1f}", f"{cost:.1f}", f"{max(peaks):.0f}"))
    print_table(COLUMNS, rows)
    ready, first = (statistics.median(found) for found in zip(*starts, strict=True))
    write_table(page, MARKS, COLUMNS, rows)
    return verdict(
        [
            Bound("ready after", ready, _READY_SECONDS, unit=" s"),
            Bound("time of the first request over that of later ones", first, _FIRST),
            Bound("PSS of an idle service", idle, _IDLE_MEGABYTES, unit=" MB"),
            Bound("PSS of a second process that listens", second - idle, _SECOND_MEGABYTES, unit=" MB"),
            Bound("CPU of an idle service", polling, _IDLE_PERCENT, unit=" % of a core"),
        ]
    )


def started(folder: Path) -> tuple[float, float]:
    """Return the seconds until a new service is ready, and the time of its first request over later ones."""
    folder.mkdir()
    body, begun = form(picture("2mp.jpg").read_bytes()), time.perf_counter()
    with service(folder) as running:
        ready = time.perf_counter() - begun
        call, moments = client(running, body), [time.perf_counter()]
        for _ in range(1 + _LATER):
            call()
            moments.append(time.perf_counter())
    first, *later = (after - before for before, after in itertools.pairwise(moments))
    return ready, first / statistics.median(later)


@contextlib.contextmanager
def peaks_of(memory: Callable[[], float]) -> Iterator[list[float]]:
    """Measure memory several times a second, until the block ends."""
    found, ended = [memory()], threading.Event()

    def measure() -> None:
        while not ended.wait(0.2):
            found.append(memory())

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def idle_percent(pid: int) -> float:
    """Return the CPU that a process and all below it take while nothing is asked of them."""
    before, begun = cpu_seconds(pid), time.perf_counter()
    time.sleep(_IDLE_SECONDS)
    return 100 * (cpu_seconds(pid) - before) / (time.perf_counter() - begun)


def memory(pid: int) -> float:
    """Return the memory of a process and of all below it, in MB."""
    total = 0.0
    for process in processes_of(pid):
        with contextlib.suppress(OSError):
            total += proportional_memory(process)
    return total


def proportional_memory(process: int) -> float:
    """Return the proportional set size of a process, in MB."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
