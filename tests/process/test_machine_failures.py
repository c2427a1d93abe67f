"""What the machine lacks is told as that, and never as damage of a picture or as a wrong request."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core._runtime.daemon_threads import start_thread
from imgsvc_core.errors import MachineFailed, ScratchUnwritable, machine_failure
from imgsvc_core.formats import availability, boundary
from imgsvc_core.formats.boundary import decoder, encoder, translate_errors
from tests.support import photos

DISC_THRESHOLD = "1m"  # above which libvips decodes into a temporary file
RANDOM_ACCESS = {"flip": {"vertical": True}, "rotate": {"angle": 10}}
PROGRAM = """
import json, sys
import imgsvc_core as imgsvc
try:
    imgsvc.process(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
except imgsvc.ImgsvcError as error:
    print(error.slug, error.message)
"""


@pytest.fixture(scope="module", params=["jpg", "png", "webp", "tiff"])
def picture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("sound") / f"photo.{request.param}"
    imgsvc.process(photos.as_vips(photos.mosaic(1000, 800)), {"output": {"effort": 0}}, file)
    return file


def told(
    *arguments: str, folder: Path | None = None, limit: Callable[[], None] | None = None, spec: object = None
) -> str:
    """Run the library in a process with a folder for temporary files, and return what it says."""
    environment = {**os.environ, "VIPS_DISC_THRESHOLD": DISC_THRESHOLD}
    if folder is not None:
        environment["TMPDIR"] = str(folder)
    first, *rest = arguments
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, first, json.dumps(spec or RANDOM_ACCESS), *rest],
        env=environment, preexec_fn=limit, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    ("numbers", "failure"),
    [
        ("ENOSPC EDQUOT EFBIG EROFS ENOENT ENOTDIR EACCES EPERM", ScratchUnwritable),
        ("EMFILE ENFILE EAGAIN EBADF EIO", MachineFailed),
    ],
)
def test_what_the_system_refuses_is_its_own_failure(numbers: str, failure: type[imgsvc.ImgsvcError]) -> None:
    for name in numbers.split():
        assert type(machine_failure(getattr(errno, name))) is failure, name
    assert machine_failure(errno.EINVAL) is machine_failure(None) is None


def test_a_folder_for_temporary_files_that_is_missing(picture: Path, tmp_path: Path) -> None:
    message = told(str(picture), folder=tmp_path / "missing")
    assert message.startswith("scratch_unwritable Temporary files cannot be written (No such file")
    assert "not at fault" in message


def test_a_file_in_the_place_of_that_folder(picture: Path) -> None:
    assert told(str(picture), folder=picture).startswith("scratch_unwritable")


def test_files_that_may_not_become_large_enough(picture: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    assert told(str(picture), folder=tmp_path, limit=limit).startswith("scratch_unwritable")


def test_no_number_of_files_makes_a_sound_picture_damaged(picture: Path, tmp_path: Path) -> None:
    program = PROGRAM.replace(
        "try:",
        "import os, resource, imgsvc_core.processing, imgsvc_core.formats.jpeg.turbojpeg, numpy, pyvips\n"
        "from PIL import Image; Image.init()\n"
        "from imgsvc_core._runtime.worker_setup import preload; preload()\n"
        "most = next((most for most in (10, 6, 4) if os.fork() == 0 or not os.wait()), 0)\n"
        "most or sys.exit()\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
        "try:",
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(picture), json.dumps(RANDOM_ACCESS)],
        env={**os.environ, "VIPS_DISC_THRESHOLD": DISC_THRESHOLD, "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    for line in ended.stdout.splitlines():
        assert line.startswith(("machine_failed", "scratch", "memory")), line
    assert ended.stderr.count("Traceback") <= ended.stderr.count("OSError: [Errno 24]")


@pytest.mark.parametrize("format", ["auto", "png", "webp", "gif", "tiff"])
def test_every_writer_tells_of_the_folder(format: str, tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    imgsvc.process(photos.as_vips(photos.mosaic(1000, 800)), None, file)
    spec = {**RANDOM_ACCESS, "output": {"format": format}}
    assert told(str(file), folder=tmp_path / "missing", spec=spec).startswith("scratch_unwritable")


@pytest.mark.parametrize("number", [24, 23, 28, 122, 27, 30, 5, 11])
def test_errors_of_the_system_in_packages_are_those_of_the_machine(number: int) -> None:
    for guard in (decoder, encoder):
        with pytest.raises(imgsvc.MachineFailed, match="not at fault"), guard("jp2"):
            raise OSError(number, os.strerror(number))


def test_no_more_files_for_a_reader_or_its_packages() -> None:
    with pytest.raises(imgsvc.MachineFailed, match="not at fault"), translate_errors("jp2"):
        raise OSError(24, os.strerror(24))
    with pytest.raises(FileNotFoundError), translate_errors("jp2"):
        raise FileNotFoundError(2, os.strerror(2))


NO_THREAD = "GLib-GIO: Error creating thread: Resource temporarily unavailable"


@pytest.mark.parametrize("error", [pyvips.Error("x", NO_THREAD), RuntimeError("can't start new thread")])
def test_a_thread_that_the_machine_refuses_is_no_lack_of_memory(error: Exception) -> None:
    for guard in (decoder, encoder):
        with pytest.raises(imgsvc.MachineFailed, match="not at fault"), guard("jp2"):
            raise error


def test_a_thread_whose_stack_has_no_room_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "bytes_left", lambda: 1 << 20)
    with pytest.raises(imgsvc.MemoryLimitExceeded), decoder("jp2"):
        raise RuntimeError("can't start new thread")


def test_a_codec_that_could_not_be_tried_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it remembered as missing."""

    def refuse(*_: object, **__: object) -> None:
        raise pyvips.Error("x", NO_THREAD)

    availability._heif_compression_works.cache_clear()
    with monkeypatch.context() as without_threads:
        without_threads.setattr("pyvips.Image.heifsave_buffer", refuse)
        with pytest.raises(imgsvc.MachineFailed, match="not at fault"):
            availability._heif_compression_works("av1")
    assert availability._heif_compression_works("av1")


def test_no_thread_for_work_that_others_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    with pytest.raises(imgsvc.MachineFailed, match="not at fault"):
        start_thread(print, name="refused")


def test_errors_of_packages_are_damage() -> None:
    with pytest.raises(imgsvc.CorruptImage), decoder("jp2"):
        raise OSError("broken data stream when reading image file")


def test_damage_is_damage_for_the_format_auto(tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    imgsvc.process(photos.as_vips(photos.mosaic(400, 300)), None, file)
    cut = file.read_bytes()[: file.stat().st_size // 2]
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(cut, {**RANDOM_ACCESS, "output": {"format": "auto"}})


def test_the_command_has_an_exit_code_for_it(tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    imgsvc.process(photos.as_vips(photos.mosaic(1000, 800)), None, file)
    environment = {
        **os.environ, "VIPS_DISC_THRESHOLD": DISC_THRESHOLD, "TMPDIR": str(tmp_path / "missing"),
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-m", "imgsvc_cli", "process", str(file), "-o", str(tmp_path / "out.png"),
         "--spec", "-"],
        input=json.dumps(RANDOM_ACCESS), env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 8, ended.stderr
    assert "TMPDIR" in ended.stderr
    assert not (tmp_path / "out.png").exists()


def test_a_batch_reports_it_and_retries(tmp_path: Path) -> None:
    source, spec = tmp_path / "in", tmp_path / "spec.json"
    source.mkdir()
    imgsvc.process(photos.as_vips(photos.mosaic(1000, 800)), None, source / "photo.jpg")
    spec.write_text(json.dumps(RANDOM_ACCESS))
    command = [sys.executable, "-m", "imgsvc_cli", "batch", str(source), str(tmp_path / "out"),
               "--spec", str(spec), "--json", "--workers", "1"]  # fmt: skip
    environment = {**os.environ, "VIPS_DISC_THRESHOLD": DISC_THRESHOLD}
    failed = subprocess.run(
        command, env={**environment, "TMPDIR": str(tmp_path / "missing")}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert json.loads(failed.stdout.splitlines()[0])["error"] == "scratch_unwritable", failed.stderr
    again = subprocess.run(
        [*command, "--retry"], env=environment, capture_output=True, text=True, timeout=120
    )
    assert json.loads(again.stdout.splitlines()[0])["outcome"] == "done", again.stderr


WITHOUT_PROC = """
import sys

def hidden(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc"):
        raise PermissionError(13, "Permission denied", arguments[0])

sys.addaudithook(hidden)
from imgsvc_cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def test_a_service_that_proc_is_hidden_from_does_not_start(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PROC, "serve", "--port", "0", "--state", tmp_path / "state"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 8
    assert ended.stderr == (
        "imgsvc: The service needs /proc for sources in memory, but /proc/self/fd cannot be read "
        "(Permission denied): mount it for this user.\n"
    )
