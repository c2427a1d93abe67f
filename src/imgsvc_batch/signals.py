"""Signals that end a batch."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_ENDING = signal.SIGTERM, signal.SIGHUP


class Interrupts:
    """The signals that a batch received. The batch calls `stop` a few times a second.

    The first signal after the batch has started stops it gently; any other raises ``KeyboardInterrupt``.
    ``received`` is the last signal, or 0.
    """

    def __init__(self) -> None:
        self.received = 0
        self._asked = False

    def stop(self) -> bool:
        """Return True if a signal was received."""
        self._asked = True
        return self.received != 0

    def handle(self, number: int, _: object) -> None:
        """Handle a signal."""
        is_first, self.received = self.received == 0, number
        if not (is_first and self._asked):
            raise KeyboardInterrupt


@contextlib.contextmanager
def ending_after_batch() -> Iterator[Interrupts]:
    """Let SIGTERM and SIGHUP end the batch in the block, and the process only afterwards.

    Signals that the program ignores or handles stay as they are. Python delivers signals to the main thread
    only. In other threads, this function does nothing.
    """
    interrupts = Interrupts()
    in_main_thread = threading.current_thread() is threading.main_thread()
    ours = [number for number in _ENDING if in_main_thread and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, interrupts.handle)
    try:
        yield interrupts
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if interrupts.received:
            signal.raise_signal(interrupts.received)
