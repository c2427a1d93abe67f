"""The event loop while `aprocess` works on a photograph of 12 megapixels, and how soon cancelling ends it.

The lag is by how much a callback that is due every 2 ms comes late, without the time that threads of this
process wait for a core, which other programs may take. A loop that only sleeps is beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import attrs
from tests.support.processes import workers_of

import imgsvc_core as imgsvc
from benchmarks.harness import Bound, print_table, verdict
from benchmarks.peers import own_cpu_seconds
from benchmarks.pictures import picture

MOST_LAG_MS = 20.0
MOST_END_S = 0.5
ROUNDS = 5
_NEGLIGIBLE = 0.001
PREVIEW = [imgsvc.Resize(width=1200), imgsvc.Output(format="webp")]
ENDLESS: dict[str, Any] = {
    "filter": [{"blur": {"mode": "motion", "value": 100, "angle": 45}}] * 9,
    "output": {"format": "png"},
}
WAYS = {"isolated": True, "thread": False}


def main() -> int:
    """Print lags and ends; 1 where a lag takes more than 20 ms, or an end more than half a second."""
    return asyncio.run(_measured(picture("12mp.jpg").read_bytes()))


async def _measured(source: bytes) -> int:
    rows, bounds = [], []
    idle = await _lag(asyncio.create_task(asyncio.sleep(1)))
    for name, isolated in WAYS.items():
        await imgsvc.aprocess(source, PREVIEW, isolated=isolated)
        lags = [await _lag(asyncio.create_task(_preview(source, isolated))) for _ in range(ROUNDS)]
        lag = statistics.median(lags)  # of the longest of each round
        end = max([await _end(source, isolated) for _ in range(ROUNDS)])
        rows.append((name, f"{1e3 * idle:.1f}", f"{1e3 * lag:.1f}", f"{end:.2f}"))
        bounds.append(Bound(f"{name}: longest lag of the loop", 1e3 * lag, MOST_LAG_MS, unit=" ms"))
        bounds.append(Bound(f"{name}: from cancelling to idle cores", end, MOST_END_S, unit=" s"))
    print_table(("", "lag asleep ms", "lag at work ms", "end s"), rows)
    return verdict(bounds)


async def _preview(source: bytes, isolated: bool) -> None:
    await imgsvc.aprocess(source, PREVIEW, isolated=isolated)


async def _lag(task: asyncio.Task[None]) -> float:
    """Return by how much a callback was late at most until the task ended."""
    longest = 0.0
    while not task.done():
        due, waited = time.perf_counter() + 0.002, _waited()
        await asyncio.sleep(0.002)
        late = time.perf_counter() - due
        longest = max(longest, late - (_waited() - waited) if late > _NEGLIGIBLE else 0.0)
    await task
    return longest


def _waited() -> float:
    """Return the seconds that the threads of this process have waited for a core."""
    nanoseconds = 0
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            nanoseconds += int((thread / "schedstat").read_text().split()[1])
    return nanoseconds / 1e9


async def _end(source: bytes, isolated: bool) -> float:
    """Return the seconds from cancelling to the last moment at which this process or its workers compute."""
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=None)
    task = asyncio.create_task(imgsvc.aprocess(source, ENDLESS, isolated=isolated, limits=limits))
    await asyncio.sleep(1)
    started = time.perf_counter()
    task.cancel()
    await asyncio.wait([task])
    ended, used = time.perf_counter(), _cpu()
    while time.perf_counter() - ended < 0.5:
        await asyncio.sleep(0.02)
        if _cpu() - used > 0.01:  # the look itself takes less
            ended = time.perf_counter()
        used = _cpu()
    return ended - started


def _cpu() -> float:
    """Return the seconds of CPU that this process and its workers have taken."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for pid in workers_of(os.getpid()):
        with contextlib.suppress(OSError):  # it has ended
            total += own_cpu_seconds(pid)
    return total


if __name__ == "__main__":
    sys.exit(main())
