"""``imgsvc process --in-place`` replaces a file at once, and never makes it larger without need."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from PIL import Image

import imgsvc_core as imgsvc
from tests.cli.test_command import run
from tests.support import forked_python
from tests.support.forked_python import COMMAND
from tests.support.photos import as_vips, coffee

KILLED = """
import os, signal, sys
from imgsvc_cli.app import run
from imgsvc_core.formats import sink

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

replace, take = os.replace, sink.Sink._take
if sys.argv[1] == "before it is written":
    sink.Sink._take = die
elif sys.argv[1] == "while it is written":
    sink.Sink._take = lambda self, chunk: (take(self, chunk), die())
elif sys.argv[1] == "before it is in place":
    os.replace = die
else:
    os.replace = lambda *names: (replace(*names), die())
flags = ["--in-place", "--no-if-smaller", "--quality", "30", "--encoding", "progressive"]  # by libvips
sys.exit(run(["process", sys.argv[2], *flags]))
"""


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.jpg"
    as_vips(coffee()).jpegsave(str(path), Q=92)
    path.chmod(0o640)
    return path


def test_the_result_takes_the_place_of_its_source(photo: Path) -> None:
    before = photo.stat().st_size
    done = run("process", photo, "--in-place", "--resize", "300x")
    assert done.returncode == 0, done.stderr
    assert imgsvc.inspect(photo).width == 300
    assert photo.stat().st_size < before
    assert photo.stat().st_mode & 0o777 == 0o640
    assert list(photo.parent.iterdir()) == [photo]


def test_a_file_that_encoding_makes_larger_stays_without_its_metadata(photo: Path) -> None:
    exif = Image.Exif()
    exif[0x8298] = "Held by Ann"
    Image.open(photo).save(photo, quality=40, exif=exif.tobytes())
    before = photo.stat().st_size
    done = run("process", photo, "--in-place")
    assert b"Encoding it again saves nothing" in done.stderr
    assert photo.stat().st_size < before
    assert b"Ann" not in photo.read_bytes()
    assert imgsvc.inspect(photo).quality == 40
    run("process", photo, "--in-place", "--no-if-smaller")
    assert imgsvc.inspect(photo).quality == 80


def test_a_file_whose_bytes_stay_is_left_alone(photo: Path) -> None:
    run("process", photo, "--in-place", "--keep-pixels")
    before = photo.stat()
    for flags in (["--keep-pixels"], ["--quality", "100"]):
        assert run("process", photo, "--in-place", *flags).returncode == 0
        after = photo.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list(photo.parent.iterdir()) == [photo]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_owner_and_group_stay(photo: Path) -> None:
    os.chown(photo, 65534, 65533)
    photo.chmod(0o2640)
    run("process", photo, "--in-place", "--resize", "50x")
    found = photo.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (65534, 65533, 0o2640)
    assert imgsvc.inspect(photo).width == 50


def test_pixels_may_stay(photo: Path) -> None:
    before = imgsvc.process(photo).to_numpy()
    done = run("process", photo, "--in-place", "--keep-pixels")
    assert done.returncode == 0, done.stderr
    assert (imgsvc.process(photo).to_numpy() == before).all()


def test_the_format_stays_whatever_the_suffix(photo: Path) -> None:
    named = photo.rename(photo.with_suffix(".png"))
    assert run("process", named, "--in-place", "--quality", "30").returncode == 0
    assert imgsvc.inspect(named).format == "jpg"
    refused = run("process", named, "--in-place", "--format", "webp")
    assert b"must have the format of its source, jpg, got webp" in refused.stderr
    assert imgsvc.inspect(named).quality == 30


def test_formats_that_are_only_read_are_refused(photo: Path) -> None:
    other = photo.with_suffix(".bmp")
    Image.open(photo).save(other)
    refused = run("process", other, "--in-place")
    assert refused.stderr.strip().endswith(b"source, bmp, got jpg: write it to another file.")
    other = photo.with_suffix(".tif")
    Image.open(photo).save(other)
    assert run("process", other, "--in-place").returncode == 0
    assert imgsvc.inspect(other).format == "tiff"


def test_hard_links_are_told(photo: Path) -> None:
    other = photo.with_name("other.jpg")
    os.link(photo, other)
    before = other.read_bytes()
    done = run("process", photo, "--in-place", "--resize", "50x")
    assert b"photo.jpg: Its other hard links still lead to the original." in done.stderr
    assert other.read_bytes() == before
    assert not run("process", photo, "--in-place", "--resize", "40x").stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-"], b"Source '-' must be a file with --in-place."),
        (["https://example.org/a.jpg"], b"must be a file with --in-place."),
        (["a.jpg", "-o", "b.jpg"], b"Give either --in-place or -o."),
    ],
)
def test_only_files_are_replaced(arguments: list[str], told: bytes) -> None:
    done = run("process", *arguments, "--in-place", stdin=b"")
    assert told in done.stderr
    assert done.returncode


def test_standard_input_that_is_empty_is_told() -> None:
    done = run("process", "-", "-o", "-", stdin=b"")
    assert done.stderr.endswith(b"imgsvc: Standard input is empty; expected an encoded image.\n")
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("moment", "is_result"),
    [
        ("before it is written", False),
        ("while it is written", False),
        ("before it is in place", False),
        ("when it is in place", True),
    ],
)
def test_a_kill_leaves_the_original_or_the_result(photo: Path, moment: str, is_result: bool) -> None:
    original = photo.read_bytes()
    ended = forked_python.run("-c", KILLED, moment, str(photo))
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (photo.read_bytes() != original) == is_result
    assert imgsvc.inspect(photo).quality == (30 if is_result else 92)


def test_kills_at_any_time_leave_a_whole_picture(photo: Path) -> None:
    original = photo.read_bytes()
    arguments = [*COMMAND, "process", str(photo), "--in-place", "--no-if-smaller", "--quality", "30"]
    started = time.monotonic()
    forked_python.run(*arguments).check_returncode()
    took, result = time.monotonic() - started, photo.read_bytes()
    for part in range(8):
        photo.write_bytes(original)
        process = forked_python.start(*arguments)
        time.sleep(took * (part + 4) / 10)
        process.kill()
        process.wait()
        assert photo.read_bytes() in (original, result)
    assert os.listdir(photo.parent)
