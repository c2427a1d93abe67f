"""Pillow's JPEG 2000 decoder, for large pictures in a process of its own.

The decoder keeps all threads of its process waiting, also the one that would notice a time limit or an
interrupt.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from multiprocessing.spawn import get_executable
from typing import IO, TYPE_CHECKING

from imgsvc_core._runtime.deadline import check_time, is_killed_by_parent
from imgsvc_core._runtime.machine import oom_kills
from imgsvc_core._runtime.private_names import load_decoded
from imgsvc_core._runtime.process_memory import Cause, cause_of, error_of
from imgsvc_core.formats.boundary import decoder
from imgsvc_core.formats.jp2 import process as jp2_process

if TYPE_CHECKING:
    from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile

_QUICK = 1_000_000  # pixels; of noise without loss, they take half a second
_TICK_SECONDS = 0.05
_TRIES = 2  # of processes that are ended from outside


def load(picture: Jpeg2KImageFile, data: bytes, reduce: int) -> None:
    """Decode a picture that was opened from the data and set to a resolution.

    Raises:
        CorruptImage: the decoder complains.
        MemoryLimitExceeded: the memory is not enough.
        TimeLimitExceeded: the time of the work in this thread is up.
        WorkerDied, MachineFailed: the process of the decoder died, or was ended from outside.
    """
    frozen = getattr(sys, "frozen", False)  # into a program that is no interpreter
    if picture.width * picture.height > _QUICK and not is_killed_by_parent() and not frozen:
        _load_in_process(picture, data, reduce)
    with decoder("jp2"):
        picture.load()  # does nothing if it is done


def _load_in_process(picture: Jpeg2KImageFile, data: bytes, reduce: int) -> None:
    """Decode in a process, if one can be started."""
    arguments = (os.getpid(), reduce, picture.width, picture.height, *sys.path)
    command = [os.fsdecode(get_executable() or sys.executable), "-I", jp2_process.__file__]
    with _temporary_file() as encoded, _temporary_file() as pixels:
        encoded.write(data)
        for _ in range(_TRIES):
            encoded.seek(0)
            pixels.seek(0)
            known = oom_kills()
            try:
                code = _run([*command, *map(str, arguments)], encoded, pixels)
            except OSError:
                return
            if code >= 0:
                break
            cause = cause_of(code, short=False, oom_killed=oom_kills() > known)
            if cause is not Cause.KILLED:
                raise error_of(cause)
        else:
            raise error_of(Cause.KILLED)
        pixels.seek(0)
        with decoder("jp2"):
            if code == jp2_process.FAILED:
                raise OSError(pixels.read().decode())
            if code == 0:
                load_decoded(picture, pixels)


def _run(command: list[str], source: IO[bytes], target: IO[bytes]) -> int:
    """Run a program, which is killed when the time of the work in this thread is up. Return its exit code."""
    with subprocess.Popen(
        command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, process_group=0
    ) as process:
        try:
            while True:
                check_time()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(_TICK_SECONDS)
        finally:
            process.kill()


def _temporary_file() -> IO[bytes]:
    """Return a file in memory if the system has such, else on disk."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("jp2"), "w+b")
    return tempfile.TemporaryFile()
