"""Finding listening processes that hang, as the parent does."""

from __future__ import annotations

import asyncio
import time

from imgsvc_http.runtime.shared_memory import shared_numbers

LOOK_SECONDS = 1.0
_LATE_SECONDS = 2.5  # two beats are missing


class Watchdog:
    """Measures how long each listening process has been silent.

    The event loop of each process counts up a number in shared memory once a second. The parent looks at
    the numbers as often. The silence of a process is the time that the parent has watched it: between two
    looks, at most a second counts. So a machine that was suspended or is overloaded, where the parent is
    late too, does not make a process look hung.

    Args:
        processes: how many there are.
        seconds: the silence after which a process hangs.
    """

    def __init__(self, processes: int, seconds: float) -> None:
        self._beats = shared_numbers(processes)
        self._seconds = seconds
        self._seen = [0] * processes
        self._silence = [0.0] * processes
        self._looked: float | None = None

    def beat(self, number: int) -> None:
        """Show once a second that the event loop of a process runs. Call this in that process."""
        self._beats[number] += 1
        asyncio.get_running_loop().call_later(LOOK_SECONDS, self.beat, number)

    def restart(self, number: int) -> None:
        """Measure the silence of a new process."""
        self._silence[number] = 0.0

    def look(self, now: float | None = None) -> None:
        """Look at all processes."""
        now = time.monotonic() if now is None else now
        passed = 0.0 if self._looked is None else min(now - self._looked, LOOK_SECONDS)
        self._looked = now
        for number, seen in enumerate(self._seen):
            beats = self._beats[number]
            self._silence[number] = self._silence[number] + passed if beats == seen else 0.0
            self._seen[number] = beats

    def is_late(self, number: int) -> bool:
        """Return True if a process has been silent for so long that others should get new connections."""
        return self._silence[number] > _LATE_SECONDS

    def hangs(self, number: int) -> bool:
        """Return True if a process must be replaced."""
        return self._silence[number] > self._seconds
