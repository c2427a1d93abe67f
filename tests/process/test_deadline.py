"""A time limit and an interrupt end the work on a picture, whatever a codec is doing."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import pyvips

import imgsvc_core as imgsvc
from imgsvc_core import making
from imgsvc_core._runtime.deadline import Deadline
from imgsvc_core.errors import SpecError, TimeLimitExceeded
from imgsvc_core.processing import process_variants
from tests.support import encoded, forked_python


def endless(side: int = 20_000) -> pyvips.Image:
    """A picture that takes minutes to compute."""
    return pyvips.Image.gaussnoise(side, side).gaussblur(30)


def test_each_deadline_has_its_own_end() -> None:
    later = Deadline(60)
    started = time.monotonic()
    with pytest.raises(TimeLimitExceeded, match=r"0\.3 seconds"):
        Deadline(0.3).run(time.sleep, 20)
    assert time.monotonic() - started < 10
    assert later.run(int, "5") == 5


def test_work_that_ends_in_time_is_not_stopped_later() -> None:
    deadline = Deadline(0.2)
    image = deadline.watch(pyvips.Image.black(10, 10))
    assert deadline.run(image.avg) == 0
    time.sleep(0.5)
    assert image.avg() == 0


@pytest.mark.parametrize(
    "request_", [{}, {"resize": {"width": 19_000}}, {"rotate": {"angle": 90}}, {"trim": {"threshold": 5}}]
)
def test_a_picture_that_is_computed_on_and_on_is_stopped_once_for_all(request_: dict[str, Any]) -> None:
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.3)
    started = time.monotonic()
    with pytest.raises(TimeLimitExceeded):
        imgsvc.process(endless(), {**request_, "output": {"format": "png"}}, limits=limits)
    assert time.monotonic() - started < 10


def test_a_watermark_that_is_computed_on_and_on_is_stopped() -> None:
    limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.3)
    started = time.monotonic()
    with pytest.raises(TimeLimitExceeded):
        imgsvc.process(
            pyvips.Image.black(50, 50),
            {"watermark": {"id": "w"}},
            watermarks={"w": endless(9_000)},
            limits=limits,
        )
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("kept", [True, False])
def test_what_a_codec_finishes_too_late_is_no_result(tmp_path: Path, kept: bool) -> None:
    picture = pyvips.Image.gaussnoise(1500, 1500, mean=128, sigma=60).cast("uchar").copy_memory()
    target = tmp_path / "late.gif" if kept else None
    request, limits = {"output": {"format": "gif"}}, imgsvc.Limits(seconds=0.05)
    with pytest.raises(TimeLimitExceeded):
        assert imgsvc.process(picture, request, target, limits=limits).data
    assert not list(tmp_path.iterdir())


def test_other_errors_after_the_time_is_up_are_told_as_what_they_are() -> None:
    def find(id_: str) -> None:
        time.sleep(0.5)
        raise KeyError(id_)

    limits = imgsvc.Limits(seconds=0.1)
    with pytest.raises(SpecError, match="known watermark"):
        imgsvc.process(pyvips.Image.black(50, 50), {"watermark": {"id": "w"}}, watermarks=find, limits=limits)


def test_the_picture_of_the_caller_is_not_marked() -> None:
    picture = pyvips.Image.black(10, 10)
    imgsvc.process(picture, threads=1)
    assert "concurrency" not in picture.get_fields()


@pytest.mark.parametrize("threads", [0, -1, 1025, True, 1.5, "1"])
def test_threads_that_are_none_are_refused(threads: Any) -> None:
    picture = pyvips.Image.black(10, 10)
    with pytest.raises(SpecError, match=r"Threads must be an integer from 1 to 1024, or null, got "):
        imgsvc.process(picture, threads=threads)
    with pytest.raises(SpecError, match=r"Threads must be"):
        process_variants(picture, {"a": {}}, threads=threads)


def test_one_picture_after_the_other_takes_few_threads() -> None:
    def threads() -> int:
        return [thread.name for thread in threading.enumerate()].count("imgsvc-daemon")

    before = threads()  # of other tests
    for _ in range(20):
        imgsvc.process(pyvips.Image.black(10, 10))
    assert threads() <= before + 4


def test_a_forked_child_has_threads_of_its_own() -> None:
    assert Deadline(60).run(int, "5") == 5
    child = os.fork()
    if child == 0:
        os._exit(Deadline(20).run(int, "7"))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


HUGE_STYLE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><style>'
    + "".join(f".a{number} .b{number} {{fill:red}}" for number in range(20_000))
    + "</style>"
    + '<g class="a1"><rect class="b1"/></g>' * 20_000
    + "</svg>"
).encode()


@pytest.mark.parametrize("look", [imgsvc.inspect, imgsvc.process])
def test_opening_a_source_takes_no_longer_than_allowed(look: Callable[..., Any]) -> None:
    """librsvg matches each rule with each element while it reads a drawing, which takes minutes here."""
    code = f"""if True:
        import time
        import imgsvc_core as imgsvc
        from tests.process.test_deadline import HUGE_STYLE
        started = time.monotonic()
        try:
            imgsvc.{look.__name__}(HUGE_STYLE, limits=imgsvc.Limits(seconds=1.5))
        except imgsvc.TimeLimitExceeded as error:
            assert "the 1.5 seconds" in error.message, error.message
            print(time.monotonic() - started)
    """
    took = forked_python.run("-c", code, timeout=60).stdout
    assert float(took) < 1.5 + 1 + 2  # the machine may be busy


NATIVE = {
    "encoder": "encoder, {'output': {'format': 'avif', 'effort': 9}}",
    "encoder that holds the interpreter": "large, {'output': {'format': 'jp2'}}",
    "filter": "large, {'filter': {'blur': {'mode': 'zoom', 'value': 100}}, 'output': {'format': 'webp'}}",
    "drawing": "HUGE_STYLE",
}


@pytest.mark.parametrize("work", NATIVE)
@pytest.mark.parametrize("how", ["limit", "interrupt"])
def test_whatever_a_codec_is_at_the_caller_is_free_within_a_second(work: str, how: str) -> None:
    """In a process of its own, which ends while the codec still works."""
    code = f"""if True:
        import signal, sys, time
        import attrs
        import pyvips
        import imgsvc_core as imgsvc
        from tests.process.test_deadline import HUGE_STYLE
        noise = pyvips.Image.gaussnoise(2000, 1500, mean=128, sigma=60).cast("uchar")
        encoder = noise.bandjoin([noise, noise]).copy(interpretation="srgb").copy_memory()
        large = encoder.replicate(3, 4)
        arguments = ({NATIVE[work]},)
        limits = attrs.evolve(imgsvc.Limits.none(), seconds=0.5 if {how!r} == "limit" else 60)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        due = time.monotonic() + 0.5
        if {how!r} == "interrupt":
            signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            imgsvc.process(*arguments, limits=limits).data
        except (KeyboardInterrupt, imgsvc.TimeLimitExceeded) as error:
            print(type(error).__name__, time.monotonic() - due)
    """
    told = forked_python.run("-c", code).stdout
    name, late = told.split()
    assert name == {"limit": "TimeLimitExceeded", "interrupt": "KeyboardInterrupt"}[how]
    assert float(late) < 1 + 2  # the machine may be busy


def test_nothing_is_left_of_a_target_when_the_encoder_cannot_be_stopped(tmp_path: Path) -> None:
    code = f"""if True:
        import pyvips
        import imgsvc_core as imgsvc
        noise = pyvips.Image.gaussnoise(2000, 1500, mean=128, sigma=60).cast("uchar").copy_memory()
        try:
            imgsvc.process(noise, {{"output": {{"effort": 9}}}}, {str(tmp_path / "late.avif")!r},
                           limits=imgsvc.Limits(seconds=0.5))
        except imgsvc.TimeLimitExceeded:
            print("late")
    """
    assert forked_python.run("-c", code, timeout=100).stdout == "late\n"
    assert not list(tmp_path.iterdir())


def test_all_files_of_a_result_share_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def begin(seconds: float | None) -> Deadline:
        begun.append(seconds)
        return Deadline(seconds)

    monkeypatch.setattr(making, "Deadline", begin)
    result = imgsvc.process(encoded.png().data, {"resize": {"width": 9}}, limits=imgsvc.Limits(seconds=50))
    for name in ("a.webp", "b.jpg"):
        result.save(tmp_path / name)
    assert begun == [50]


def test_files_and_functions_of_the_caller_are_used_in_its_thread() -> None:
    used = set()

    class Source(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            used.add(threading.current_thread())
            return super().read(size)

    def mark(_: str) -> io.BytesIO:
        used.add(threading.current_thread())
        return Source(encoded.png().data)

    class Target(io.BytesIO):
        def write(self, data: Any) -> int:
            used.add(threading.current_thread())
            return super().write(data)

    imgsvc.process(Source(encoded.jpeg().data), {"watermark": {"id": "a"}}, Target(), watermarks=mark)
    assert used == {threading.current_thread()}


@pytest.mark.parametrize("look", [imgsvc.process, imgsvc.inspect])
def test_a_file_that_drips_ends_at_the_limit(look: Callable[..., Any]) -> None:
    class Dripping(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            time.sleep(0.05)
            return b"x"

    with pytest.raises(TimeLimitExceeded, match=r"longer than the 0\.3 seconds"):
        look(Dripping(), limits=imgsvc.Limits(seconds=0.3))


INSPECTED = """
import sys, threading
from pathlib import Path
import imgsvc_core as imgsvc
path = Path(sys.argv[1])
for source in (path, str(path), path.read_bytes(), memoryview(path.read_bytes())):
    assert imgsvc.inspect(source, digest=True).sha256
    with path.open("rb") as file:
        imgsvc.inspect(file)
print([thread.name for thread in threading.enumerate() if thread.name == "imgsvc-daemon"])
"""


DECODED = """
import io, sys, threading
from PIL import Image
import imgsvc_core as imgsvc
file = io.BytesIO()
Image.new("RGB", (int(sys.argv[1]), 200), "red").save(file, sys.argv[2])
imgsvc.to_numpy(file.getvalue(), eval(sys.argv[3]))
print([thread.name for thread in threading.enumerate() if thread.name == "imgsvc-daemon"])
"""


@pytest.mark.parametrize(
    ("width", "format", "request_", "threads"),
    [
        (200, "JPEG", {}, []),
        (200, "PNG", {}, []),
        (200, "WEBP", {}, []),
        (200, "JPEG", {"resize": {"width": 90}}, []),
        (200, "JPEG", {"resize": {"width": 900}}, ["imgsvc-daemon"]),
        (200, "JPEG", {"filter": {"sepia": {"value": 50}}}, ["imgsvc-daemon"]),
        (2000, "JPEG", {}, ["imgsvc-daemon"]),
        (200, "TIFF", {}, ["imgsvc-daemon"]),
    ],
)
def test_only_few_pixels_are_decoded_in_the_thread_of_the_caller(
    width: int, format: str, request_: dict[str, Any], threads: list[str]
) -> None:
    told = forked_python.run("-c", DECODED, str(width), format, repr(request_))
    assert told.stdout == f"{threads}\n", told.stderr


@pytest.mark.parametrize(
    ("content", "threads"),
    [
        (encoded.encoded("jpeg").data, []),
        (encoded.encoded("png").data, []),
        (encoded.encoded("bmp").data + bytes(1 << 18), ["imgsvc-daemon"]),
        (b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', ["imgsvc-daemon"]),
    ],
    ids=["jpeg", "png", "large", "svg"],
)
def test_only_headers_that_may_take_long_are_read_in_a_thread(
    content: bytes, threads: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "picture"
    path.write_bytes(content)
    told = forked_python.run("-c", INSPECTED, str(path))
    assert told.stdout == f"{threads}\n", told.stderr
