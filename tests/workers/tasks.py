"""What the tests let workers do."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import attrs
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core._runtime.deadline import Deadline
from imgsvc_core._runtime.process_memory import naming_shortage
from imgsvc_core.errors import Problem, SpecError


def echo(value: object) -> object:
    return value


def process_id() -> int:
    return os.getpid()


def command_and_files() -> tuple[bytes, list[str]]:
    """Return the command line of this process and what it has open."""
    files = [os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.exists()]
    return Path("/proc/self/cmdline").read_bytes(), files


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def be_killed(times: int, path: Path) -> int:
    """Be ended from outside, in the first processes. Return how many began."""
    with path.open("a+") as file:
        file.write("x")
    begun = path.stat().st_size
    if begun <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return begun


def crash_if_short(needed: int, crashes: bool) -> None:
    """Use memory that could not be allocated, as some codecs do."""
    with naming_shortage(needed):
        if crashes:
            crash()


def end_like_glib() -> None:
    """End as GLib does if it cannot allocate."""
    os.kill(os.getpid(), signal.SIGTRAP)


def hold(size: int) -> int:
    return len(bytearray(size))


def refuse() -> None:
    raise SpecError([Problem("resize.width", "wrong"), Problem("rotate", "wrong too")])


def wait_and_write(seconds: float, path: Path, begun: Path | None = None) -> None:
    if begun is not None:
        begun.touch()
    time.sleep(seconds)
    path.write_text("done")


def load_unlisted(path: str) -> None:
    pyvips.Image.new_from_file(path).avg()


def be_deaf(path: Path) -> None:
    """Go on whatever signals say, but for SIGKILL."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    path.touch()
    time.sleep(60)


def encode_slowly(seconds: float) -> None:
    """Keep an encoder busy for minutes that cannot be stopped."""
    noise = pyvips.Image.gaussnoise(3000, 2000, mean=128, sigma=60).cast("uchar").copy_memory()
    limits = imgsvc.Limits(seconds=seconds)
    assert imgsvc.process(noise, {"output": {"format": "avif", "effort": 9}}, limits=limits).data


def process_endlessly(seconds: float) -> tuple[int, str]:
    """Begin a picture that takes minutes. Return the process, and the error at the time limit."""
    picture = pyvips.Image.gaussnoise(20_000, 20_000).gaussblur(30)
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=seconds)
    try:
        imgsvc.process(picture, {"output": {"format": "png"}}, limits=limits)
    except imgsvc.TimeLimitExceeded as error:
        return os.getpid(), error.slug
    raise AssertionError("It ended.")


def process_slowly(seconds: float, lasting: float) -> int:
    """Do something that lasts within the time limit of a picture. Return the process."""
    assert Deadline(seconds).run(time.sleep, lasting) is None
    return os.getpid()
