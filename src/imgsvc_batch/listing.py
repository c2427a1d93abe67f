"""List the source in a thread, while the inputs found so far are processed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from imgsvc_batch.inputs import Input

_AHEAD = 100_000
"""Inputs that are held in memory. At some 500 bytes each, this is 50 MB."""

_TICK_SECONDS = 0.2


class Listing:
    """A queue of the inputs of a source. ``found`` counts them, and is final once ``listed`` is True."""

    def __init__(self, inputs: Iterator[Input]) -> None:
        self.found = 0
        self.listed = False
        self.ended = False
        self._queue: queue.Queue[Input | BaseException | None] = queue.Queue(_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._list, args=(inputs,), name="imgsvc-listing", daemon=True)
        self._thread.start()

    def take(self, *, wait: bool) -> Input | None:
        """Return the next input, or None if no input has been found yet or the listing has ended.

        ``ended`` is True at the end.

        Raises:
            SourceUnreachable: the source cannot be listed.
        """
        try:
            item = self._queue.get(wait, _TICK_SECONDS)
        except queue.Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        self.ended = item is None
        return item

    def is_short(self, most: int, seconds: float) -> bool:
        """Return True if the listing ends within some seconds with so many inputs at most."""
        self._thread.join(seconds)
        return self.listed and self.found <= most

    def stop(self) -> None:
        """Stop listing."""
        self._stopped.set()
        self._thread.join(_TICK_SECONDS)

    def _list(self, inputs: Iterator[Input]) -> None:
        try:
            for item in inputs:
                self.found += 1
                self._put(item)
                if self._stopped.is_set():
                    return
            self.listed = True
            self._put(None)
        except BaseException as error:  # raised again by take()
            self._put(error)

    def _put(self, item: Input | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=_TICK_SECONDS)
                return
            except queue.Full:
                continue
