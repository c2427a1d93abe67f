"""A limit on the time that libvips works on a picture."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pyvips

from imgsvc_core.errors import ImgsvcError, TimeLimitExceeded


class Watch:
    """Stops the evaluation of the pictures it watches over, once the time is up."""

    def __init__(self) -> None:
        self.expired = False
        self._lock = threading.Lock()
        self._watched: list[pyvips.Image] = []

    def over(self, image: pyvips.Image) -> pyvips.Image:
        """The picture, watched: everything computed from it stops when the time is up."""
        watched = image.copy()
        with self._lock:
            self._watched.append(watched)
            watched.set_kill(self.expired)
        return watched

    def expire(self) -> None:
        """Stop everything."""
        with self._lock:
            self.expired = True
            for image in self._watched:
                image.set_kill(True)


@contextlib.contextmanager
def deadline(seconds: float | None) -> Iterator[Watch]:
    """A watch for the block, which ends with `TimeLimitExceeded` where the watch had to stop something."""
    watch = Watch()
    timer = threading.Timer(seconds or 0, watch.expire)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield watch
    except (ImgsvcError, pyvips.Error) as error:
        if not watch.expired:
            raise
        raise TimeLimitExceeded(
            f"Processing took longer than the {seconds:g} seconds that are allowed: ask for less, "
            "or send a smaller image."
        ) from error
    finally:
        timer.cancel()
