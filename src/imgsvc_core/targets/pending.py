"""A computed picture that is encoded when someone asks for it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from imgsvc_core._runtime.failing import without_pictures
from imgsvc_core.formats.memory import Computed
from imgsvc_core.formats.raster import Raster
from imgsvc_core.targets.result import Finished, Timing
from imgsvc_core.targets.writing import Target


@attrs.define(eq=False)
class Pending:
    """The pixels of a result. ``measure`` and ``encode`` are called at most once each.

    ``convert`` writes them to a target in the format of its suffix, unless the request names a format. A
    pickle holds the encoded picture instead.
    """

    picture: Computed | Raster
    measure: Callable[[Computed | Raster], Mapping[str, Any]]
    encode: Callable[[Computed | Raster, Mapping[str, Any]], Finished]
    took: Timing
    convert: Callable[[Computed | Raster, Target], None] | None = None
    ended: Finished | None = None
    _facts: Mapping[str, Any] | None = None
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    @without_pictures
    def finished(self) -> Finished:
        """Return the encoded picture. Other threads that ask for it wait."""
        with self._lock:
            if self.ended is None:
                self.ended = self.encode(self.picture, self._measured())
            return self.ended

    @without_pictures
    def facts(self) -> Mapping[str, Any]:
        """Return the facts of the pixels, which need no encoding."""
        with self._lock:
            return self._measured()

    def _measured(self) -> Mapping[str, Any]:
        if self._facts is None:
            self._facts = self.measure(self.picture)
        return self._facts

    @property
    def timing(self) -> Timing:
        """The time that the work has taken so far."""
        return self.took if self.ended is None else self.ended.timing

    def pixels(self) -> Computed | Raster:
        """Return the pixels before encoding."""
        return self.picture

    def save_as(self, target: Target) -> bool:
        """Write the pixels in the format of a target's suffix. Return False if the request names a format."""
        if self.convert is not None:
            self.convert(self.picture, target)
        return self.convert is not None

    def __deepcopy__(self, memo: dict[int, Any]) -> Pending:
        """Return this one, because its pixels never change."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.finished(),)
