"""The public suites of sharp, Pillow and libvips, with imgsvc among the contenders.

Rewritten from what they do: JPEG and PNG with alpha of sharp's ``test/bench``, the full cycle of pillow-perf,
and vips-bench: crop 100 pixels off every edge, shrink by 10 % with a linear kernel, sharpen by 3 x 3 weights,
save. Pictures are as large as the originals, but those of vips-bench have half the sides. Qualities are those
of the suites, the same for all. Contenders else have the options that the suites give them, or none: imgsvc
compresses TIFFs, the others do not.

Everything runs with one thread on one CPU, and times are of that CPU. ImageMagick starts anew each time, as
in the suites. SSIMULACRA2 compares the middle of the result, of up to a megapixel, with the exact one: all
pixels reduced by Lanczos, blurred and sharpened in floating point. ``python -m benchmarks.suites JOB...``
runs some of the jobs, and ``python -m benchmarks.suites docs/performance.md`` also writes the table there.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

os.environ["VIPS_CONCURRENCY"] = "1"  # before libvips starts
os.environ["MAGICK_THREAD_LIMIT"] = "1"

import attrs
import numpy as np
import pyvips
from PIL import Image
from tests.support.photos import Pixels, as_vips

from benchmarks.harness import (
    Bound,
    Contender,
    Program,
    Series,
    compare,
    print_table,
    run_timed,
    running,
    stay_on_one_cpu,
    timed,
    verdict,
    write_table,
)
from benchmarks.installed import pillow_simd
from benchmarks.pictures import picture
from benchmarks.sharp import sharp_process
from benchmarks.truth import on_white, reduced, ssimulacra2
from imgsvc_core import Blur, Crop, Limits, Output, Resize, Rotate, Spec, process
from imgsvc_core.spec.thumbor_filters import Convolution

Image.MAX_IMAGE_PIXELS = None
_WEIGHTS = [-1, -1, -1, -1, 16, -1, -1, -1, -1]
_SCALE = 8
_BLUR_AT_100 = 0.05  # parts of the shorter side
_MIDDLE = 1000
_LIMITS = Limits(source_bytes=10**8)
_ROUNDS = 3
_MARKS = ("<!-- suites -->", "<!-- /suites -->")
_COLUMNS = ("suite and job", "by", "CPU ms", "bytes", "SSIMULACRA2", "speed of imgsvc over it")


@attrs.frozen
class Job:
    """A source of some size, what is done, and how it is saved."""

    title: str
    source: str
    source_size: tuple[int, int]
    format: str
    size: tuple[int, int] | None = None
    kernel: str = "lanczos3"
    quality: int | None = None
    border: int = 0
    turn: bool = False
    blur: float = 0
    sharpen: bool = False
    files: bool = False

    @property
    def suffix(self) -> str:
        return {"jpeg": "jpg", "tiff": "tif"}.get(self.format, self.format)


def _jobs() -> Iterator[tuple[str, Job]]:
    """Yield the jobs by short names."""
    for files, title in ((False, "buffer to buffer"), (True, "file to file")):
        end = "_files" if files else ""
        photo = Job(
            f"sharp: JPEG, {title}", "6mp.jpg", (2725, 2225), "jpeg", (720, 588), quality=80, files=files
        )
        yield f"sharp_jpeg{end}", photo
        alpha = Job(f"sharp: PNG with alpha, {title}", "alpha.png", (2048, 1536), "png", (720, 540))
        yield f"sharp_png{end}", attrs.evolve(alpha, files=files)
    cycle = Job("pillow-perf: load and save", "4mp.jpg", (2560, 1600), "jpeg", kernel="cubic", quality=85)
    turned = attrs.evolve(cycle, title="pillow-perf: and transpose", turn=True)
    resized = attrs.evolve(turned, title="pillow-perf: and resize", size=(640, 1024))
    blurred = attrs.evolve(resized, title="pillow-perf: and blur", blur=4)
    names = ("cycle", "cycle_turn", "cycle_resize", "cycle_blur")
    yield from zip(names, (cycle, turned, resized, blurred), strict=True)
    for kind, format in (("tif", "tiff"), ("jpg", "jpeg")):
        yield f"vips_{format}", Job(
            f"vips-bench: {format.upper()}", f"25mp.{kind}", (5000, 5000), format, (4320, 4320),
            kernel="linear", quality=75, border=100, sharpen=True, files=True,
        )  # fmt: skip


JOBS: Mapping[str, Job] = dict(_jobs())


def main(arguments: list[str]) -> int:
    pages = [argument for argument in arguments if argument not in JOBS]
    jobs = {name: job for name, job in JOBS.items() if not set(arguments) & set(JOBS) or name in arguments}
    found: dict[str, dict[str, Series]] = {}
    rows: list[tuple[str, ...]] = []
    with _programs() as programs, tempfile.TemporaryDirectory() as folder:
        for name, job in jobs.items():
            contenders = _contenders(job, Path(folder), programs)
            one = contenders["imgsvc"](2).wall
            found[name] = compare(contenders, rounds=_ROUNDS, repeats=max(1, round(0.15 / one)))
            rows += _rows(job, found[name], Path(folder))
            print_table(_COLUMNS, rows[-len(contenders) :])
    for page in pages:
        write_table(page, _MARKS, _COLUMNS, rows)
    return verdict(
        [
            Bound(f"{name}: speed over the fastest", _speed(series), 1.0, at_least=True)
            for name, series in found.items()
        ]
    )


@contextlib.contextmanager
def _programs() -> Iterator[dict[str, Program]]:
    """Start the contenders that live in processes of their own."""
    program = Path(__file__).with_name("by_pillow.py")
    pythons = {"Pillow": Path(sys.executable), "Pillow-SIMD": pillow_simd()}
    with contextlib.ExitStack() as stack:
        programs = {"sharp": stack.enter_context(sharp_process())}
        for name, python in pythons.items():
            if python is None:
                print(f"{name} is left out, as it could not be built.\n")
            else:
                programs[name] = stack.enter_context(running([python, program]))
        yield programs


def _contenders(job: Job, folder: Path, programs: Mapping[str, Program]) -> dict[str, Contender]:
    """Return the contenders of a job, each of which leaves its result in a file."""
    kept = {name: _kept(folder, name, job) for name in ("imgsvc", "pyvips", "ImageMagick", *programs)}
    contenders: dict[str, Contender] = {
        "imgsvc": timed(_kept_by(imgsvc(job, kept["imgsvc"]), kept["imgsvc"])),
        "pyvips": timed(_kept_by(by_pyvips(job, kept["pyvips"]), kept["pyvips"])),
        "ImageMagick": lambda _: run_timed(by_magick(job, kept["ImageMagick"]))(1),
    }
    for name, program in programs.items():
        ask = _sharp_job(job) if name == "sharp" else _pillow_job(job)
        place = {"output" if job.files else "keep": str(kept[name])}
        request = {"output": None, "keep": None, **ask, **place}
        contenders[name] = partial(
            program.timing, input=str(picture(job.source)), buffered=not job.files, **request
        )
    return contenders


def _kept(folder: Path, name: str, job: Job) -> Path:
    return folder / f"{name}.{job.suffix}"


def _kept_by(work: Callable[[], bytes | None], path: Path) -> Callable[[], object]:
    """Do the work once to keep its result, and return the work."""
    data = work()
    if data is not None:
        path.write_bytes(data)
    return work


def _speed(series: Mapping[str, Series]) -> float:
    others = (one for name, one in series.items() if name != "imgsvc")
    return min(series["imgsvc"].times_cheaper_than(other) for other in others)


def _rows(job: Job, series: Mapping[str, Series], folder: Path) -> list[tuple[str, ...]]:
    ours, expected = series["imgsvc"], _middle(exact(job))
    rows = []
    for name, one in series.items():
        data = _kept(folder, name, job).read_bytes()
        shown = _shown(data, job)
        wanted = job.size or ((1600, 2560) if job.turn else (2560, 1600))
        assert shown.shape[1::-1] == wanted, f"{job.title}: {name} made {shown.shape[1::-1]}"
        score = ssimulacra2(expected, _middle(shown))
        speed = "" if one is ours else f"{ours.times_cheaper_than(one):.2f}"
        rows.append(
            (
                job.title,
                name,
                f"{one.cpu * 1e3:.1f}",
                f"{len(data):,}",
                f"{score:.1f}",
                speed,
            )
        )
    return rows


def _shown(data: bytes, job: Job) -> Pixels:
    """Return the pixels of a result. Convolved TIFFs by sharp have floats, which Pillow cannot read."""
    if job.format != "tiff":
        return on_white(data)
    pixels: Pixels = pyvips.Image.new_from_buffer(data, "").cast("uchar").numpy()
    return pixels


def exact(job: Job) -> Pixels:
    """Return the result as it should be, without loss."""
    if job.format == "png" and job.size:
        return reduced(picture(job.source), *job.size)
    with Image.open(picture(job.source)) as source:
        image = source.convert("RGB")
    border = job.border
    image = image.crop((border, border, image.width - border, image.height - border))
    if job.turn:
        image = image.transpose(Image.Transpose.ROTATE_270)
    if job.size:
        image = image.resize(job.size, Image.Resampling.LANCZOS)
    done = as_vips(np.asarray(image)).cast("float")
    if job.blur:
        done = done.gaussblur(job.blur, min_ampl=0.001, precision="float")
    if job.sharpen:
        done = done.conv(_mask(), precision="float")
    pixels: Pixels = done.rint().cast("uchar").numpy()
    return pixels


def _mask() -> pyvips.Image:
    rows = [_WEIGHTS[place : place + 3] for place in range(0, 9, 3)]
    return pyvips.Image.new_from_array(rows, scale=_SCALE)


def _middle(pixels: Pixels) -> Pixels:
    height, width = pixels.shape[:2]
    top, left = max(0, (height - _MIDDLE) // 2), max(0, (width - _MIDDLE) // 2)
    return pixels[top : top + _MIDDLE, left : left + _MIDDLE]


def imgsvc(job: Job, target: Path) -> Callable[[], bytes | None]:
    """The job as a request, with our defaults."""
    width, height = job.source_size
    border = 2 * job.border
    spec = Spec(
        crop=Crop(width=width - border, height=height - border, gravity="center") if border else None,
        rotate=Rotate(angle=90) if job.turn else None,
        resize=Resize(width=job.size[0], height=job.size[1], mode="stretch") if job.size else None,
        filter=_filter(job),
        output=Output(format=job.suffix, quality=job.quality if job.format == "jpeg" else None),
    )
    path = picture(job.source)
    source = None if job.files else path.read_bytes()

    def run() -> bytes | None:
        to = target if job.files else None
        return process(source or path, spec, to, threads=1, limits=_LIMITS).data

    return run


def _filter(job: Job) -> Any:
    if job.sharpen:
        return Convolution(weights=tuple(weight / _SCALE for weight in _WEIGHTS), columns=3)
    if job.blur and job.size:
        return Blur(mode="gaussian", value=100 * job.blur / (_BLUR_AT_100 * min(job.size)))
    return None


def by_pyvips(job: Job, target: Path) -> Callable[[], bytes | None]:
    """The job as the suites write it; by the thumbnailer if a picture is only resized."""
    path = str(picture(job.source))
    source = None if job.files else Path(path).read_bytes()
    options = (
        {"compression": 6} if job.format == "png" else {"Q": job.quality} if job.format == "jpeg" else {}
    )

    def run() -> bytes | None:
        if job.size and not (job.turn or job.border):
            size: dict[str, Any] = {"height": job.size[1], "size": "force"}
            thumbnail = pyvips.Image.thumbnail if source is None else pyvips.Image.thumbnail_buffer
            image = thumbnail(path if source is None else source, job.size[0], **size)
        elif source is None:
            image = pyvips.Image.new_from_file(path)
        else:
            image = pyvips.Image.new_from_buffer(source, "")
        if border := job.border:
            image = image.crop(border, border, image.width - 2 * border, image.height - 2 * border)
            image = image.reduce(1 / 0.9, 1 / 0.9, kernel=job.kernel)
        if job.turn:
            image = image.rot90()
            image = image.resize(0.4, kernel=job.kernel) if job.size else image
        if job.blur:
            image = image.gaussblur(job.blur, min_ampl=0.07)
        if job.sharpen:
            image = image.conv(_mask(), precision="integer")
        if job.files:
            image.write_to_file(str(target), **options)
            return None
        data: bytes = image.write_to_buffer(f".{job.suffix}", **options)
        return data

    return run


def by_magick(job: Job, target: Path) -> list[str]:
    """The job as the suites give it to ImageMagick."""
    command = ["convert", str(picture(job.source))]
    if job.border:
        command += ["-shave", f"{job.border}x{job.border}"]
    if job.turn:
        command += ["-rotate", "90"]
    if job.size:
        kernel = {"lanczos3": "Lanczos", "cubic": "Catrom", "linear": "Triangle"}[job.kernel]
        command += ["-filter", kernel, "-resize", "{}x{}!".format(*job.size)]
    if job.blur:
        command += ["-blur", f"{2.5 * job.blur}x{job.blur}"]
    if job.sharpen:
        command += ["-convolve", ",".join(map(str, _WEIGHTS))]
    if job.format == "png":
        command += ["-define", "PNG:compression-level=6", "-define", "PNG:compression-filter=0"]
    if job.format == "tiff":
        command += ["-depth", "8"]
    if job.quality and job.format == "jpeg":
        command += ["-quality", str(job.quality)]
    return [*command, str(target)]


def _sharp_job(job: Job) -> dict[str, Any]:
    save: dict[str, Any] = {
        "jpeg": {"quality": job.quality},
        "png": {"compressionLevel": 6},
        "tiff": {"compression": "none"},
    }[job.format]
    width, height = job.source_size
    inner = {
        "left": job.border,
        "top": job.border,
        "width": width - 2 * job.border,
        "height": height - 2 * job.border,
    }
    return {
        "extract": inner if job.border else None,
        "turn": job.turn,
        "resize": {"width": job.size[0], "height": job.size[1], "kernel": job.kernel} if job.size else None,
        "blur": job.blur or None,
        "convolve": {"width": 3, "height": 3, "kernel": _WEIGHTS, "scale": _SCALE} if job.sharpen else None,
        "format": job.format,
        "save": save,
    }


def _pillow_job(job: Job) -> dict[str, Any]:
    kernel = {"lanczos3": "LANCZOS", "cubic": "BICUBIC", "linear": "BILINEAR"}[job.kernel]
    return {
        "border": job.border,
        "turn": job.turn,
        "size": job.size,
        "kernel": kernel,
        "blur": job.blur,
        "convolve": _WEIGHTS if job.sharpen else None,
        "scale": _SCALE,
        "format": job.format.upper(),
        "save": {"compress_level": 6} if job.format == "png" else {"quality": job.quality},
    }


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(sys.argv[1:]))
