"""Pillow decodes large JPEG 2000 pictures in a process of its own, with the same outcome."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from imgsvc_core.errors import CorruptImage, MachineFailed, MemoryLimitExceeded, WorkerDied
from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jp2 import decoding as jp2_decoding
from imgsvc_core.formats.jp2 import process as jp2_process
from imgsvc_core.formats.jp2 import reading as jp2
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
from tests.process.test_deadline import large_jp2
from tests.support import handmade, photos

PHOTO = Image.fromarray(photos.astronaut())
PICTURES = {
    "gray": PHOTO.convert("L"),
    "gray and alpha": PHOTO.convert("LA"),
    "color": PHOTO,
    "color and alpha": PHOTO.convert("RGBA"),
    "luma and chroma": PHOTO.convert("YCbCr"),
    "16 bits": Image.fromarray(np.asarray(PHOTO.convert("L")).astype(np.uint16) * 257),
}


def encoded(kind: str) -> bytes:
    if kind == "palette":
        return with_palette(handmade.pillow(PICTURES["gray"], "JPEG2000"))
    return handmade.pillow(PICTURES[kind], "JPEG2000")


def with_palette(gray: bytes) -> bytes:
    """Give a palette to a gray picture."""
    colors = b"".join(bytes((value, 255 - value, 99)) for value in range(256))
    boxes = (
        make_box(b"ihdr", gray[gray.index(b"ihdr") + 4 :][:14]),
        make_box(b"colr", b"\1\0\0\0\0\0\x10"),
        make_box(b"pclr", b"\1\0\3\7\7\7" + colors),
        make_box(b"cmap", b"".join(bytes((0, 0, 1, column)) for column in range(3))),
    )
    start, end = gray.index(b"jp2h") - 4, gray.index(b"jp2c") - 4
    return gray[:start] + make_box(b"jp2h", b"".join(boxes)) + gray[end:]


def decoded(data: bytes, scale: float = 1.0) -> Any:
    source = ByteSource(data)
    return load(probe(source), LoadSettings(scale=scale)).numpy()


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Take all pictures for large ones decoded by Pillow. Return the exit codes of the processes."""
    codes: list[int] = []
    run = jp2_decoding._run

    def noted(*arguments: Any) -> int:
        codes.append(run(*arguments))
        return codes[-1]

    monkeypatch.setattr(jp2_decoding, "_QUICK", 0)
    monkeypatch.setattr(jp2_decoding, "_run", noted)
    monkeypatch.setattr(jp2, "find_spec", lambda _: None)
    return codes


@pytest.mark.parametrize("kind", [*PICTURES, "palette"])
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_pixels_are_those_of_this_process(
    kind: str, scale: float, processes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = decoded(encoded(kind), scale)
    assert processes == [0]
    monkeypatch.setattr(jp2_decoding, "is_killed_by_parent", lambda: True)
    np.testing.assert_array_equal(elsewhere, decoded(encoded(kind), scale))
    assert processes == [0]


def test_damage_is_told_in_the_same_words(processes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded("color")[:40_000]
    with pytest.raises(CorruptImage) as elsewhere:
        decoded(data)
    assert processes == [jp2_process.FAILED]
    monkeypatch.setattr(jp2_decoding, "is_killed_by_parent", lambda: True)
    with pytest.raises(CorruptImage) as here:
        decoded(data)
    assert elsewhere.value.message == here.value.message


@pytest.mark.parametrize("program", ["/bin/false", "/bin/none"])
def test_without_an_interpreter_pictures_are_decoded_here(
    program: str, processes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = decoded(encoded("color"))
    monkeypatch.setattr(jp2_decoding, "get_executable", lambda: program.encode())
    np.testing.assert_array_equal(decoded(encoded("color")), expected)


@pytest.mark.parametrize(
    ("signal", "error", "words"),
    [
        ("SEGV", WorkerDied, "picture died"),
        ("KILL", MachineFailed, "ended from outside"),
        ("ABRT", MemoryLimitExceeded, "ran out of memory"),
    ],
)
def test_a_process_that_dies_is_named(
    signal: str, error: type[Exception], words: str,
    processes: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    program = tmp_path / "crash"
    program.write_text(f"#!/bin/sh\nkill -{signal} $$\n")
    program.chmod(0o700)
    monkeypatch.setattr(jp2_decoding, "get_executable", lambda: os.fsencode(program))
    with pytest.raises(error, match=words):
        decoded(encoded("color"))


def test_it_ends_with_the_process_that_wants_the_pixels(tmp_path: Path) -> None:
    path = tmp_path / "large.jp2"
    path.write_bytes(large_jp2())
    code = """if True:
        import sys
        import imgsvc_core as imgsvc
        limits = imgsvc.Limits.none()
        imgsvc.process(sys.argv[1], {"resize": {"width": 1500}, "output": {"format": "jpg"}}, limits=limits)
    """
    with subprocess.Popen([sys.executable, "-c", code, str(path)]) as wanting:
        tasks = Path(f"/proc/{wanting.pid}/task")
        found: list[str] = []
        while not found:
            assert wanting.poll() is None
            time.sleep(0.02)
            found = [pid for task in tasks.glob("*/children") for pid in task.read_text().split()]
        wanting.kill()
    assert gone_in_time(Path("/proc") / found[0] / "stat")


def gone_in_time(stat: Path) -> bool:
    """Return True if a process ends soon; orphans may stay zombies."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX":
            return True
        time.sleep(0.02)
    return False
