"""The memory that a process may still use, and the reasons why a process ended in the middle of its work."""

from __future__ import annotations

import mmap
import resource
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from enum import IntEnum
from pathlib import Path

from imgsvc_core._runtime.failing import handling
from imgsvc_core.errors import (
    CorruptImage,
    EncodingFailed,
    ImgsvcError,
    MachineFailed,
    MemoryLimitExceeded,
    WorkerDied,
)

NO_MEMORY = (
    "The process that worked on this picture ran out of memory: ask for a smaller size, or send a smaller "
    "image."
)
DIED = "The process that worked on this picture died: ask for less, or send another image."
KILLED = (
    "The processes that worked on this picture were ended from outside, each time that it was tried: this is "
    "no fault of the picture. Try again later."
)
_NO_THREADS = (
    "The process that worked on this picture died, as the machine starts no more threads: this is no fault "
    "of the picture. Try again later."
)
_THREADS = 8  # threads that codecs and libvips usually start for a picture
_STATM = Path("/proc/self/statm")
_SIZE, _DATA = 0, 5  # fields: all pages, and the pages of data and stack
_watched: list[mmap.mmap | memoryview] = []


class Cause(IntEnum):
    """The reasons why a process ends in the middle of its work."""

    UNKNOWN = 0
    """Its parent was gone, so nobody received the exit code."""
    MEMORY = 1
    """It probably lacked memory."""
    CRASH = 2
    """The work crashed it, and would crash another process, too."""
    KILLED = 3
    """It was killed from outside. The work can be done again."""
    MACHINE = 4
    """It probably lacked threads: the machine starts no more of them."""


def cause_of(exit_code: int, *, short: bool, oom_killed: bool) -> Cause:
    """Return why a process ended.

    Args:
        exit_code: its exit code, or the negative number of a signal.
        short: whether it was short of memory, as `show_shortage` tells.
        oom_killed: whether the kernel killed it, or a process like it, for lack of memory.
    """
    import signal  # takes time, and few processes end other ones

    out_of_memory = signal.SIGABRT, signal.SIGTRAP  # of libraries that cannot allocate
    if exit_code == -signal.SIGKILL:
        return Cause.MEMORY if oom_killed else Cause.KILLED
    if exit_code < 0 and not _threads_can_start():
        return Cause.MACHINE
    return Cause.MEMORY if short or -exit_code in out_of_memory else Cause.CRASH


def error_of(cause: Cause) -> ImgsvcError:
    """Return the error for work whose process ended."""
    if cause is Cause.MEMORY:
        return MemoryLimitExceeded(NO_MEMORY)
    if cause is Cause.CRASH:
        return WorkerDied(DIED)
    return MachineFailed(_NO_THREADS if cause is Cause.MACHINE else KILLED)


def _threads_can_start() -> bool:
    """Try to start as many threads as a picture takes. libvips does not check, and would crash."""
    end, threads = threading.Event(), []
    try:
        for _ in range(_THREADS):
            thread = threading.Thread(target=end.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError:
        return False
    finally:
        end.set()
        for thread in threads:
            thread.join()
    return True


def show_shortage(byte: mmap.mmap | memoryview) -> None:
    """From now on, set a byte of shared memory to 1 when this process may lack memory for its request.

    A codec that cannot allocate may crash the process in any way, for example by using a null pointer. The
    byte tells the parent that memory may be the reason.
    """
    _watched[:] = [byte]
    forget_shortage()


def forget_shortage() -> None:
    """Set the byte to 0 before another request."""
    for byte in _watched:
        byte[0] = 0


def naming_shortage(needed: int) -> AbstractContextManager[None]:
    """Report failures of codecs as a lack of memory if this process may not allocate ``needed`` bytes.

    Few codecs tell that they failed because they cannot allocate.

    Raises:
        MemoryLimitExceeded: a codec failed, probably because of the limits of the process.
    """
    for byte in _watched:
        left = bytes_left()
        byte[0] = left is not None and needed > left
    return _naming_shortage(needed)


@handling
def _naming_shortage(needed: int) -> Iterator[None]:
    try:
        yield
    except (CorruptImage, EncodingFailed) as error:
        left = bytes_left()
        if left is None or needed <= left:
            raise
        raise MemoryLimitExceeded(
            f"The request could need {needed:,} bytes of memory for this image, and this process may use "
            f"only {left:,} more: send a smaller image, or ask for a smaller size or another format."
        ) from error


def bytes_left() -> int | None:
    """Return how many more bytes this process may allocate, or None without a limit that it knows."""
    limits = {_SIZE: resource.RLIMIT_AS, _DATA: resource.RLIMIT_DATA}
    soft = {field: resource.getrlimit(limit)[0] for field, limit in limits.items()}
    bounded = {field: most for field, most in soft.items() if most != resource.RLIM_INFINITY}
    if not bounded:
        return None
    try:
        pages = _STATM.read_text(encoding="ascii").split()
    except OSError:
        return None
    return max(0, min(most - int(pages[field]) * resource.getpagesize() for field, most in bounded.items()))
