"""A computed picture that is encoded when someone asks for it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import attrs

from imgsvc_core._runtime.failing import without_pictures
from imgsvc_core.formats.memory import Computed
from imgsvc_core.formats.raster import Raster
from imgsvc_core.targets.result import Finished, Timing


@attrs.define(eq=False)
class Pending:
    """The pixels of a result, which ``encode`` encodes once.

    A pickle holds the encoded picture instead.
    """

    picture: Computed | Raster
    encode: Callable[[Computed | Raster], Finished]
    took: Timing
    ended: Finished | None = None
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    @without_pictures
    def finished(self) -> Finished:
        """Return the encoded picture. Other threads that ask for it wait."""
        with self._lock:
            if self.ended is None:
                self.ended = self.encode(self.picture)
            return self.ended

    @property
    def timing(self) -> Timing:
        """The time that the work has taken so far."""
        return self.took if self.ended is None else self.ended.timing

    def pixels(self) -> Computed | Raster:
        """Return the pixels before encoding."""
        return self.picture

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.finished(),)
