"""Thirteen jobs with one thread, beside sharp and libvips' own thumbnailer through pyvips, buffer to buffer.

Everything on one CPU. The jobs are those of sharp's own benchmark and what else is common; encoders have the
same quality, effort and resolution of color on all sides. Times are those of the CPU, which other programs
disturb least. ``python -m benchmarks.libraries JOB...`` runs some of them, and
``python -m benchmarks.libraries docs/performance.md`` also writes the table there.

Beside each time stand the bytes and the truth of the result: SSIMULACRA2 against the exact one, which is all
pixels reduced by Lanczos; of an animation, of its first frame. What a job does more than resize is done to
the exact result in the same way as by us.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

os.environ["VIPS_CONCURRENCY"] = "1"  # before libvips starts: the thumbnailer has no other way to be told

import attrs
import pyvips
from tests.support.photos import Pixels

from benchmarks.harness import (
    Bound,
    Contender,
    Series,
    compare,
    print_table,
    stay_on_one_cpu,
    timed,
    verdict,
    write_table,
)
from benchmarks.pictures import picture
from benchmarks.sharp import Sharp, sharp_process
from benchmarks.truth import on_white, reduced, ssimulacra2
from imgsvc_core import parse, process

_QUALITY = 80
_BLUR_SIGMA = 3
_BLUR_AT_100 = 0.05  # parts of the shorter side
_MEDIUM = (720, 588)
_MARKS = ("<!-- libraries -->", "<!-- /libraries -->")
_COLUMNS = (
    "job", "by", "CPU ms", "spread", "bytes", "SSIMULACRA2", "speed of imgsvc over it",
)  # fmt: skip


@attrs.frozen
class Job:
    """A source, the size of the result, its format, and what else is done."""

    title: str
    source: str
    size: tuple[int, int] | None
    format: str
    animated: bool = False
    colors: bool = False
    blur: bool = False
    mark: str | None = None
    crop: tuple[int, int, int, int] | None = None  # width, height, left and top, after a turn by 90 degrees
    times: float = 0.95  # as fast as the fastest of the others, at least


JOBS: Mapping[str, Job] = {
    "jpeg_300": Job("JPEG 6 MP to 300 x 245", "6mp.jpg", (300, 245), "jpeg"),
    "jpeg_720": Job("JPEG 6 MP to 720 x 588", "6mp.jpg", _MEDIUM, "jpeg", times=1.1),
    "jpeg_12mp": Job("JPEG 12 MP to 1600 x 1200", "12mp.jpg", (1600, 1200), "jpeg"),
    "png_alpha": Job("PNG with alpha, 3 MP to 720 x 540", "alpha.png", (720, 540), "png"),
    "png_palette": Job("the same with 256 colors", "alpha.png", (720, 540), "png", colors=True),
    "png_small": Job("PNG 64 x 64 to 32 x 32", "small.png", (32, 32), "png"),
    "jpeg_webp": Job("JPEG 6 MP to WebP 720 x 588", "6mp.jpg", _MEDIUM, "webp"),
    "jpeg_avif": Job("JPEG 6 MP to AVIF 720 x 588", "6mp.jpg", _MEDIUM, "avif"),
    "gif_gif": Job("GIF of 20 frames to half its size", "20frames.gif", (240, 196), "gif", animated=True),
    "gif_webp": Job("GIF of 20 frames to WebP", "20frames.gif", (240, 196), "webp", animated=True),
    "blur": Job("JPEG 6 MP to 720 x 588, blurred by 3 pixels", "6mp.jpg", _MEDIUM, "jpeg", blur=True),
    "watermark": Job("JPEG 6 MP to 720 x 588 with a watermark", "6mp.jpg", _MEDIUM, "jpeg", mark="mark.png"),
    "rotate_crop": Job("JPEG 6 MP turned and cropped", "6mp.jpg", None, "jpeg", crop=(700, 900, 300, 400)),
}


def main(arguments: list[str]) -> int:
    pages = [argument for argument in arguments if argument not in JOBS]
    jobs = {name: job for name, job in JOBS.items() if not set(arguments) & set(JOBS) or name in arguments}
    found: dict[str, dict[str, Series]] = {}
    rows: list[tuple[str, ...]] = []
    with sharp_process() as sharp, tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "result"
        for name, job in jobs.items():
            ours, theirs = imgsvc(job), by_pyvips(job)
            contenders: dict[str, Contender] = {
                "imgsvc": timed(ours),
                "sharp": partial(by_sharp, sharp, job),
                "pyvips": timed(theirs),
            }
            seconds = contenders["sharp"](3).cpu
            found[name] = compare(contenders, rounds=7, repeats=max(1, round(0.15 / seconds)))
            by_sharp(sharp, job, 1, keep=str(kept))
            results = {"imgsvc": ours(), "sharp": kept.read_bytes(), "pyvips": theirs()}
            rows += _rows(job, found[name], results)
            print_table(_COLUMNS, rows[-len(results) :])
    for page in pages:
        write_table(page, _MARKS, _COLUMNS, rows)
    return verdict(
        [
            Bound(
                f"{name}: speed over the faster of sharp and pyvips",
                _speed(found[name]),
                job.times,
                at_least=True,
            )
            for name, job in jobs.items()
        ]
    )


def _speed(series: Mapping[str, Series]) -> float:
    return min(series["imgsvc"].times_cheaper_than(series[other]) for other in ("sharp", "pyvips"))


def _rows(job: Job, series: Mapping[str, Series], results: Mapping[str, bytes]) -> list[tuple[str, ...]]:
    ours, expected = series["imgsvc"], exact(job)
    return [
        (
            job.title,
            name,
            f"{one.cpu * 1e3:.2f}",
            f"{one.spread:.0%}",
            f"{len(results[name]):,}",
            f"{ssimulacra2(expected, on_white(results[name])):.1f}",
            "" if one is ours else f"{ours.times_cheaper_than(one):.2f}",
        )
        for name, one in series.items()
    ]


def exact(job: Job) -> Pixels:
    """The result as it should be: all pixels reduced by Lanczos, and what else is done, without loss."""
    if job.size and not (job.blur or job.mark):
        return reduced(picture(job.source), *job.size)
    return on_white(imgsvc(attrs.evolve(job, format="png"), scaling="exact")())


def imgsvc(job: Job, scaling: str = "fast") -> Callable[[], bytes]:
    """The job as a request, with the efforts that are the same of the encoders as in the other two."""
    source = picture(job.source).read_bytes()
    output: dict[str, Any] = {
        "jpeg": {"format": "jpg", "quality": _QUALITY, "encoding": "baseline", "effort": 4},
        "webp": {"format": "webp", "quality": _QUALITY, "effort": 6},
        "avif": {"format": "avif", "quality": 50, "effort": 2, "subsampling": "420"},
        "gif": {"format": "gif", "effort": 4},
        "png": {"format": "png", **({"colors": 256} if job.colors else {})},
    }[job.format]
    request: dict[str, Any] = {"output": output}
    if job.size:
        width, height = job.size
        request["resize"] = {"width": width, "height": height, "mode": "stretch", "scaling": scaling}
        if job.blur:
            request["filter"] = {
                "blur": {"mode": "gaussian", "value": 100 * _BLUR_SIGMA / (_BLUR_AT_100 * min(job.size))}
            }
    if job.crop:
        width, height, left, top = job.crop
        request |= {"rotate": {"angle": 90}, "crop": {"width": width, "height": height, "x": left, "y": top}}
    marks = None
    if job.mark:
        request["watermark"] = {"id": "mark", "gravity": "bottom-right"}
        marks = {"mark": picture(job.mark).read_bytes()}
    spec = parse(request)

    def run() -> bytes:
        return process(source, spec, watermarks=marks, threads=1).data

    return run


def by_pyvips(job: Job) -> Callable[[], bytes]:
    """The job as people write it with pyvips."""
    source = picture(job.source).read_bytes()
    mark = picture(job.mark).read_bytes() if job.mark else None
    save: dict[str, Any] = {
        "jpeg": {"Q": _QUALITY, "optimize_coding": True},
        "webp": {"Q": _QUALITY, "effort": 4},
        "avif": {"compression": "av1", "Q": 50, "effort": 2},
        "gif": {"effort": 3},
        "png": {"compression": 6, "filter": "none", "palette": job.colors},
    }[job.format]
    suffix = {"avif": "heif"}.get(job.format, job.format)

    def run() -> bytes:
        if job.size:
            width, height = job.size
            pages = {"option_string": "n=-1"} if job.animated else {}
            image = pyvips.Image.thumbnail_buffer(source, width, height=height, size="force", **pages)
        else:
            image = pyvips.Image.new_from_buffer(source, "")
        if job.crop:
            width, height, left, top = job.crop
            image = image.rot90().crop(left, top, width, height)
        if job.blur:
            image = image.gaussblur(_BLUR_SIGMA)
        if mark:
            over = pyvips.Image.new_from_buffer(mark, "")
            x, y = image.width - over.width, image.height - over.height
            image = image.composite2(over, "over", x=x, y=y).flatten()
        data: bytes = getattr(image, f"{suffix}save_buffer")(keep="none", **save)
        return data

    return run


def by_sharp(sharp: Sharp, job: Job, repeats: int, keep: str | None = None) -> Any:
    """The job as a request to the other process."""
    save: dict[str, Any] = {
        "jpeg": {"quality": _QUALITY},
        "webp": {"quality": _QUALITY, "effort": 4},
        "avif": {"quality": 50, "effort": 2, "chromaSubsampling": "4:2:0"},
        "gif": {"effort": 3},
        "png": {"compressionLevel": 6, "palette": job.colors},
    }[job.format]
    return sharp.timing(
        repeats,
        input=str(picture(job.source)),
        buffered=True,
        options={"animated": job.animated},
        resize={"width": job.size[0], "height": job.size[1]} if job.size else None,
        crop=dict(zip(("width", "height", "left", "top"), job.crop, strict=True)) if job.crop else None,
        blur=_BLUR_SIGMA if job.blur else None,
        mark=str(picture(job.mark)) if job.mark else None,
        format=job.format,
        save=save,
        keep=keep,
    )


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(sys.argv[1:]))
