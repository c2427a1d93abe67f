"""Tasks for workers that misbehave in each of the ways that a decoder may."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import attrs

from imgsvc_core._runtime.process_memory import naming_shortage
from imgsvc_core._runtime.tasks import TaskResult
from imgsvc_core.errors import CorruptImage, Problem, SpecError
from imgsvc_core.limits import Limits


@attrs.frozen
class Tell:
    """Tell of the source and the process."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        facts = {"pid": os.getpid(), "threads": threads, "size": len(source)}
        return TaskResult({**facts, "priority": os.getpriority(os.PRIO_PROCESS, 0)}, source[::-1])


@attrs.frozen
class HangInNativeCode:
    """Stay in C, where Python handles no signal, beside another thread."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        libc = ctypes.PyDLL(None)  # keeps the interpreter's lock
        while True:
            libc.usleep(500_000)


@attrs.frozen
class Crash:
    """Use memory that is not there."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        ctypes.string_at(0)
        return TaskResult({})


@attrs.frozen
class BeKilled:
    """Be ended from outside, in the first processes; each writes a letter into the source."""

    times: int
    source: str
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        with open(self.source, "ab") as file:
            file.write(b"x")
        if len(source) < self.times:
            os.kill(os.getpid(), signal.SIGKILL)
        return TaskResult({"tries": len(source) + 1})


@attrs.frozen
class WaitOnce:
    """Write a letter into the source, and wait for the end unless there was one."""

    source: str
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        with open(self.source, "ab") as file:
            file.write(b"x")
        if not source:
            time.sleep(60)
        return TaskResult({"tries": len(source) + 1})


@attrs.frozen
class CrashWithoutMemory:
    """Use memory that could not be allocated, as some codecs do."""

    needed: int
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        with naming_shortage(self.needed):
            ctypes.string_at(0)
        return TaskResult({})


@attrs.frozen
class EndLikeGlib:
    """End as GLib does if it cannot allocate."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        os.kill(os.getpid(), signal.SIGTRAP)
        return TaskResult({})


@attrs.frozen
class TakeMemory:
    """Ask for memory, and use it."""

    size: int
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        return TaskResult({"size": len(bytearray(self.size))})


@attrs.frozen
class Chatter:
    """Write to standard output and standard error as libraries in C do."""

    text: bytes
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        for stream in (1, 2):
            os.write(stream, self.text)
        return TaskResult({})


@attrs.frozen
class Refuse:
    """Fail as the library does."""

    wrong_request: bool
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        if self.wrong_request:
            raise SpecError(
                [Problem("resize.width", "Resize 'width' is wrong"), Problem("flip", "Flip is wrong")]
            )
        raise CorruptImage("The image is damaged.")


@attrs.frozen
class Mistake:
    """Fail as no code of ours should."""

    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        raise KeyError("forgotten")


@attrs.frozen
class WaitFor:
    """Go on until a file exists."""

    file: str
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        while not os.path.exists(self.file):
            time.sleep(0.01)
        return TaskResult({})


@attrs.frozen
class Sleep:
    """Take some time."""

    seconds: float
    limits: Limits = Limits()

    def run(self, source: bytes, threads: int) -> TaskResult:
        time.sleep(self.seconds)
        return TaskResult({})
