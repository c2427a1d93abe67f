"""A limit on the time that libvips works on a picture."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pyvips

from imgsvc_core.errors import ImgsvcError, TimeLimitExceeded


class Watch:
    """Stops the evaluation of the pictures it watches over, once the time is up."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.expired = False
        self._end = None if seconds is None else time.monotonic() + seconds

    def over(self, image: pyvips.Image) -> pyvips.Image:
        """The picture, watched: everything computed from it stops when the time is up."""
        if self._end is None:
            return image
        watched = image.copy()
        watched.set_progress(True)
        watched.signal_connect("eval", self._check)
        return watched

    def _check(self, image: pyvips.Image, _progress: Any) -> None:
        assert self._end is not None
        if time.monotonic() > self._end:
            self.expired = True
            image.set_kill(True)


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[Watch]:
    """A watch for the block, which ends with `TimeLimitExceeded` where the watch had to stop something."""
    watch = Watch(seconds)
    try:
        yield watch
    except (ImgsvcError, pyvips.Error) as error:
        if not watch.expired:
            raise
        raise TimeLimitExceeded(
            f"Processing took longer than the {seconds:g} seconds that are allowed: ask for less, "
            "or send a smaller image."
        ) from error
