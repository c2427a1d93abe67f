"""A service that watches its own event loop: ``python -m tests.http.watched_service STATE``.

It prints its address and key. Then it prints, for every empty line that it reads, how long the loop was held
up at most since the last one, in seconds; ``sleep`` and ``work`` hold it up on purpose, and ``thread`` works
beside it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from imgsvc_http import Settings
from imgsvc_http import serve as serve_module
from imgsvc_http.serve import Greeting
from imgsvc_http.settings import ServerSettings, WorkersSettings

_TICK_SECONDS = 0.01
_SLEEP_SECONDS = 0.2
_WORK, _WORK_BESIDE = 5_000, 25_000  # sums
_HOLDING = ctypes.PyDLL(None)
_BOOK = ctypes.create_string_buffer(200)


@attrs.frozen
class Moment:
    """The time, and how long each thread worked and waited for a processor so far, in seconds."""

    time: float
    worked: float
    waited: Mapping[int, float]

    @classmethod
    def now(cls) -> Moment:
        """By the kernel's books of the interpreter's threads; where it keeps none, nobody ever waited."""
        threads = {thread.native_id for thread in threading.enumerate() if thread.native_id is not None}
        threads.add(threading.get_native_id())  # `Thread` has the id from before the process was forked
        return cls(time.perf_counter(), time.thread_time(), {thread: _waited(thread) for thread in threads})

    def held_up_since(self, before: Moment) -> float:
        """How long the process itself kept its loop from a tick that was due.

        A thread that is ready but gets no processor is the machine's doing. That goes for the loop's own
        thread, and for others while it does nothing, as they may have the interpreter's lock.
        """
        worked = self.worked - before.worked
        waits = {
            thread: waited - before.waited[thread]
            for thread, waited in self.waited.items()
            if thread in before.waited
        }
        unexplained = self.time - before.time - _TICK_SECONDS - worked - sum(waits.values())
        return worked + max(0.0, unexplained)


def _waited(thread: int) -> float:
    """How long a thread waited for a processor; nothing of one that has just ended.

    Read without letting go of the interpreter's lock, as the loop would then wait for it once for each file.
    """
    path = b"/proc/self/task/%d/schedstat" % thread
    file = _HOLDING.open(path, os.O_RDONLY)
    if file < 0:
        return 0.0
    size = _HOLDING.read(file, _BOOK, len(_BOOK))
    _HOLDING.close(file)
    return int(_BOOK.raw[:size].split()[1]) / 1e9 if size > 0 else 0.0


class Watch:
    """A task that is due all the time, and notes when it comes late."""

    longest = 0.0

    async def run(self) -> None:
        while True:
            before = Moment.now()
            await asyncio.sleep(_TICK_SECONDS)
            self.longest = max(self.longest, Moment.now().held_up_since(before))


def sleep() -> None:
    time.sleep(_SLEEP_SECONDS)


def work(sums: int = _WORK) -> None:
    """Compute for some 60 ms, and longer on a slow machine."""
    for _ in range(sums):
        sum(range(1000))


def work_beside() -> None:
    threading.Thread(target=work, args=[_WORK_BESIDE]).start()


HOLD: Mapping[str, Callable[[], None]] = {"sleep": sleep, "work": work, "thread": work_beside}


async def obey(watch: Watch) -> None:
    """Do as the lines say, and end the service at their end."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line.strip():
            asyncio.get_running_loop().call_soon(HOLD[line.strip()])
        else:
            await asyncio.sleep(_TICK_SECONDS)  # what was held up until now is noted first
            print(watch.longest, flush=True)
            watch.longest = 0.0
    os.kill(os.getppid(), signal.SIGTERM)


def main(state: Path) -> None:
    serving = serve_module.serve_process

    async def watched(*arguments: Any) -> None:
        """Serve in the process that listens, which the parent forks, and watch its loop."""
        watch = Watch()
        watching = [asyncio.create_task(work) for work in (watch.run(), obey(watch))]
        await serving(*arguments)
        for task in watching:
            task.cancel()

    def greet(greeting: Greeting) -> None:
        print(greeting.address, greeting.key, flush=True)

    serve_module.serve_process = watched
    workers = WorkersSettings(number=1, queue_seconds=60)
    settings = Settings(server=ServerSettings(state_folder=state, port=0), workers=workers)
    serve_module.serve(settings, greet)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
