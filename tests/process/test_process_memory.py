"""Codecs that cannot allocate: a limit of the process is told as a limit, not as damage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import imgsvc_core as imgsvc
from imgsvc_core._runtime.process_memory import Cause, cause_of
from tests.support import photos

PROGRAM = """
import resource, sys
import imgsvc_core as imgsvc
name, path, target, more = sys.argv[1:]
rotated = {"rotate": {"angle": 20}, "output": {"format": target}}
imgsvc.process(imgsvc.process(b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
                              {"output": {"format": path.rpartition(".")[2]}}).data, rotated, threads=1)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(getattr(resource, name), (used + int(more), used + int(more)))
try:
    imgsvc.process(path, rotated, threads=1)
except imgsvc.ImgsvcError as error:
    print(error.slug, error)
else:
    print("done")
"""


def told(path: Path, target: str, more: int, limit: str = "RLIMIT_AS") -> str:
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, "-c", PROGRAM, limit, str(path), target, str(more)]
    return subprocess.run(
        command, text=True, timeout=100, env=environment, capture_output=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    for format in ("avif", "webp"):
        request = {"resize": {"width": 4000, "upscale": True}, "output": {"format": format, "effort": 0}}
        imgsvc.process(photos.coffee(), request, folder / f"large.{format}")
    return folder


@pytest.mark.parametrize("format", ["avif", "webp"])
def test_a_source_that_does_not_fit_is_no_damaged_one(format: str, folder: Path) -> None:
    answer = told(folder / f"large.{format}", "png", 30_000_000)
    assert answer.startswith("memory_limit_exceeded "), answer


def test_damage_is_told_as_damage_where_the_memory_suffices(folder: Path) -> None:
    damaged = folder / "damaged.webp"
    damaged.write_bytes((folder / "large.webp").read_bytes()[:20_000])
    assert told(damaged, "png", 4_000_000_000).startswith("corrupt_image ")
    assert told(folder / "large.webp", "png", 4_000_000_000) == "done\n"


UNTRIED = """
import resource
import pyvips
import imgsvc_core as imgsvc
picture = pyvips.Image.black(10, 10, bands=3).copy(interpretation="srgb")
imgsvc.process(picture, {"output": {"format": "png"}}, threads=1).data
_, hard = resource.getrlimit(resource.RLIMIT_DATA)
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
for more in (20_000_000, 500_000_000):
    resource.setrlimit(resource.RLIMIT_DATA, (used + more, hard))
    try:
        imgsvc.process(picture, {"output": {"format": "avif"}}, threads=1).data
    except imgsvc.ImgsvcError as error:
        print(error.slug)
    else:
        print("done")
"""


def test_a_codec_that_could_not_be_tried_is_none_that_lacks() -> None:
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    told = subprocess.check_output([sys.executable, "-c", UNTRIED], text=True, env=environment)
    assert told == "memory_limit_exceeded\ndone\n"


@pytest.mark.parametrize(
    ("exit_code", "short", "oom_killed", "cause"),
    [
        (-signal.SIGABRT, False, False, Cause.MEMORY),
        (-signal.SIGTRAP, False, False, Cause.MEMORY),
        (-signal.SIGSEGV, True, False, Cause.MEMORY),
        (-signal.SIGSEGV, False, True, Cause.CRASH),
        (-signal.SIGKILL, False, True, Cause.MEMORY),
        (-signal.SIGKILL, True, False, Cause.KILLED),
        (1, False, False, Cause.CRASH),
    ],
)
def test_why_a_process_ended(exit_code: int, short: bool, oom_killed: bool, cause: Cause) -> None:
    assert cause_of(exit_code, short=short, oom_killed=oom_killed) is cause
