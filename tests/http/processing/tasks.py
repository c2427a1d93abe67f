"""Tasks for workers that misbehave in each of the ways that a decoder may."""

from __future__ import annotations

import ctypes
import os
import signal
import time

import attrs

from imgsvc_core.errors import CorruptImage, Problem, SpecError
from imgsvc_core.limits import Limits
from imgsvc_http.processing.tasks import Outcome


@attrs.frozen
class Tell:
    """Tell of the source and the process."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        return Outcome({"pid": os.getpid(), "threads": threads, "size": len(source)}, source[::-1])


@attrs.frozen
class HangInNativeCode:
    """Stay in C, where Python handles no signal."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        libc = ctypes.PyDLL(None)  # keeps the interpreter's lock
        while True:
            libc.usleep(500_000)


@attrs.frozen
class Crash:
    """Use memory that is not there."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        ctypes.string_at(0)
        return Outcome({})


@attrs.frozen
class EndLikeGlib:
    """End as GLib does if it cannot allocate."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        os.kill(os.getpid(), signal.SIGTRAP)
        return Outcome({})


@attrs.frozen
class TakeMemory:
    """Ask for memory, and use it."""

    size: int
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        return Outcome({"size": len(bytearray(self.size))})


@attrs.frozen
class Refuse:
    """Fail as the library does."""

    wrong_request: bool
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        if self.wrong_request:
            raise SpecError(
                [Problem("resize.width", "Resize 'width' is wrong"), Problem("flip", "Flip is wrong")]
            )
        raise CorruptImage("The image is damaged.")


@attrs.frozen
class Mistake:
    """Fail as no code of ours should."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        raise KeyError("forgotten")


@attrs.frozen
class Sleep:
    """Take some time."""

    seconds: float
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> Outcome:
        time.sleep(self.seconds)
        return Outcome({})
