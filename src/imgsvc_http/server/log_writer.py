"""Writing the log in a thread of its own, so that nobody who logs waits for those who read it."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable

_GATHER_SECONDS = 0.05  # many lines are written at once, which takes less time than each on its own
_RETRY_SECONDS = 1.0
_FLUSH_SECONDS = 1.0


class LogWriter:
    """Writes lines to a file descriptor. Lines that do not fit into a bounded queue are lost and counted.

    The queue is full if nobody reads a pipe or a terminal. A disk may be full, too. When the log flows again,
    a line tells how many are missing at its place.

    Args:
        descriptor: where to write.
        notice: makes the line about a number of lost lines.
        most_bytes: the size of the queue.
    """

    def __init__(self, descriptor: int, notice: Callable[[int], str], *, most_bytes: int = 2**20) -> None:
        self._descriptor = descriptor
        self._notice = notice
        self._most_bytes = most_bytes
        self.lost = 0
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Begin with an empty queue and without a thread, as a process that was forked has none."""
        self._lines: deque[bytes] = deque()
        self._bytes = 0  # of lines in the queue and in a write that has not ended
        self._untold = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, line: str) -> None:
        """Put a line into the queue, or count it if there is no room."""
        encoded = f"{line}\n".encode(errors="backslashreplace")
        with self._changed:
            if self._bytes + len(encoded) > self._most_bytes:
                self._lose(1)
                return
            self._lines.append(encoded)
            self._bytes += len(encoded)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="imgsvc-log", daemon=True)
                with contextlib.suppress(RuntimeError):  # no thread can be started: the next line tries again
                    thread.start()
                    self._thread = thread
            if len(self._lines) == 1:
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all lines are written, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes, timeout=_FLUSH_SECONDS)

    def _lose(self, count: int) -> None:
        self.lost += count
        self._untold += count

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
            time.sleep(_GATHER_SECONDS)
            with self._changed:
                lines, untold = [*self._lines], self._untold
                self._lines.clear()
                self._untold = 0
            written = self._write(lines, untold)
            with self._changed:
                self._bytes -= sum(map(len, lines))
                self._lose(0 if written else len(lines))
                self._untold += 0 if written else untold
                self._changed.notify_all()
            if not written:
                time.sleep(_RETRY_SECONDS)

    def _write(self, lines: list[bytes], untold: int) -> bool:
        """Write lines and then what is missing after them. Return False if the system refuses it."""
        rest = memoryview(b"".join(lines) + (f"{self._notice(untold)}\n".encode() if untold else b""))
        room = select.poll()
        room.register(self._descriptor, select.POLLOUT)
        with contextlib.suppress(OSError):
            while rest:
                with contextlib.suppress(BlockingIOError):  # another program may have changed the mode
                    rest = rest[os.write(self._descriptor, rest) :]
                room.poll()
        return not rest
