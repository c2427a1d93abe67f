"""A search for inputs that goes on while others are worked on."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

from imgsvc_batch.inputs import Input

_AT_ONCE = 500
_PATIENCE_SECONDS = 0.2
_AHEAD = 8


class Listing:
    """A thread that finds inputs, some ahead of whoever takes them."""

    def __init__(self, inputs: Iterator[Input]) -> None:
        self.ended = False
        self._found: queue.Queue[list[Input] | BaseException | None] = queue.Queue(_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._search, args=(inputs,), name="imgsvc-listing", daemon=True
        )
        self._thread.start()

    def take(self, seconds: float) -> list[Input]:
        """Some that were found; none where the search is slow, or at its end.

        Raises:
            SourceUnreachable: the source cannot be listed.
        """
        try:
            found = self._found.get(timeout=seconds) if seconds else self._found.get_nowait()
        except queue.Empty:
            return []
        if isinstance(found, BaseException):
            raise found
        self.ended = found is None
        return found or []

    def stop(self) -> None:
        """Search no more."""
        self._stopped.set()
        self._thread.join(_PATIENCE_SECONDS)

    def _search(self, inputs: Iterator[Input]) -> None:
        try:
            found: list[Input] = []
            since = time.monotonic()
            for item in inputs:
                found.append(item)
                if len(found) == _AT_ONCE or time.monotonic() - since > _PATIENCE_SECONDS:
                    self._put(found)
                    found, since = [], time.monotonic()
                if self._stopped.is_set():
                    return
            self._put(found)
            self._put(None)
        except BaseException as error:  # told to whoever waits
            self._put(error)

    def _put(self, found: list[Input] | BaseException | None) -> None:
        while not self._stopped.is_set():
            try:
                self._found.put(found, timeout=_PATIENCE_SECONDS)
                return
            except queue.Full:
                continue
