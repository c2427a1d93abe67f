"""Thirteen jobs with one thread, beside sharp and libvips' own thumbnailer through pyvips, buffer to buffer.

Everything on one CPU. The jobs are those of sharp's own benchmark and what else is common; encoders have the
same quality, effort and resolution of color on all sides. Times are those of the CPU, which other programs
disturb least. ``python -m benchmarks.libraries JOB...`` runs some of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

os.environ["VIPS_CONCURRENCY"] = "1"  # before libvips starts: the thumbnailer has no other way to be told

import attrs
import pyvips

from benchmarks.harness import Bound, Contender, Series, compare, print_table, stay_on_one_cpu, timed, verdict
from benchmarks.pictures import picture
from benchmarks.sharp import Sharp, sharp_process
from imgsvc_core import parse, process

_QUALITY = 80
_BLUR_SIGMA = 3
_BLUR_AT_100 = 0.05  # parts of the shorter side
_MEDIUM = (720, 588)
_FASTEST = "speed over the faster of both"


@attrs.frozen
class Job:
    """A source, the size of the result, its format, and what else is done."""

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
    "jpeg_300": Job("6mp.jpg", (300, 245), "jpeg"),
    "jpeg_720": Job("6mp.jpg", _MEDIUM, "jpeg", times=1.1),
    "jpeg_12mp": Job("12mp.jpg", (1600, 1200), "jpeg"),
    "png_alpha": Job("alpha.png", (720, 540), "png"),
    "png_palette": Job("alpha.png", (720, 540), "png", colors=True),
    "png_small": Job("small.png", (32, 32), "png"),
    "jpeg_webp": Job("6mp.jpg", _MEDIUM, "webp"),
    "jpeg_avif": Job("6mp.jpg", _MEDIUM, "avif"),
    "gif_gif": Job("20frames.gif", (240, 196), "gif", animated=True),
    "gif_webp": Job("20frames.gif", (240, 196), "webp", animated=True),
    "blur": Job("6mp.jpg", _MEDIUM, "jpeg", blur=True),
    "watermark": Job("6mp.jpg", _MEDIUM, "jpeg", mark="mark.png"),
    "rotate_crop": Job("6mp.jpg", None, "jpeg", crop=(700, 900, 300, 400)),
}


def main(names: list[str]) -> int:
    jobs = {name: job for name, job in JOBS.items() if not names or name in names}
    found: dict[str, dict[str, Series]] = {}
    with sharp_process() as sharp:
        for name, job in jobs.items():
            contenders: dict[str, Contender] = {
                "imgsvc": timed(imgsvc(job)),
                "sharp": partial(by_sharp, sharp, job),
                "pyvips": timed(by_pyvips(job)),
            }
            seconds = contenders["sharp"](3).cpu
            found[name] = compare(contenders, rounds=7, repeats=max(1, round(0.15 / seconds)))
    print_table(
        ("cpu ms", "imgsvc", "sharp", "pyvips", "sharp / imgsvc", "pyvips / imgsvc", "spread"),
        [(name, *_row(series)) for name, series in found.items()],
    )
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


def _row(series: Mapping[str, Series]) -> list[str]:
    ours = series["imgsvc"]
    times = [f"{one.cpu * 1e3:.2f}" for one in series.values()]
    ratios = [f"{ours.times_cheaper_than(series[other]):.2f}" for other in ("sharp", "pyvips")]
    return [*times, *ratios, f"{ours.spread:.0%}"]


def imgsvc(job: Job) -> Callable[[], bytes]:
    """The job as a request, with the efforts that are the same of the encoders as in the other two."""
    source = picture(job.source).read_bytes()
    output: dict[str, Any] = {
        "jpeg": {"format": "jpg", "quality": _QUALITY, "encoding": "baseline", "effort": 4},
        "webp": {"format": "webp", "quality": _QUALITY, "effort": 6},
        "avif": {"format": "avif", "quality": 50, "effort": 2},
        "gif": {"format": "gif", "effort": 4},
        "png": {"format": "png", **({"colors": 256} if job.colors else {})},
    }[job.format]
    request: dict[str, Any] = {"output": output}
    if job.size:
        width, height = job.size
        request["resize"] = {"width": width, "height": height, "mode": "stretch"}
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
        data = process(source, spec, watermarks=marks, threads=1).data
        assert data is not None
        return data

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


def by_sharp(sharp: Sharp, job: Job, repeats: int) -> Any:
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
    )


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(sys.argv[1:]))
