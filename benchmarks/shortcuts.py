"""What each fast way saves, and what it costs to look at, beside the general way to the same result.

``python -m benchmarks.shortcuts docs/performance.md`` also writes the table there. The general way is what
runs where the fast one does not suit: the fast one is switched off for it. Times are of the CPU with one
thread. The difference is the SSIMULACRA2 of the fast result against the general one, and the most levels of
255 that they differ by. Scaled decoding has a benchmark of its own: `benchmarks.sharpness`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
import pyvips
from PIL import Image
from tests.support import photos

from benchmarks.harness import Bound, compare, print_table, stay_on_one_cpu, timed, verdict, write_table
from benchmarks.pictures import picture
from benchmarks.truth import on_white, ssimulacra2
from imgsvc_core import parse, process
from imgsvc_core.formats.gif import writing as gif
from imgsvc_core.formats.jpeg import turbojpeg
from imgsvc_core.formats.webp import writing as webp
from imgsvc_core.pixels import strips
from imgsvc_core.pixels.spatial import gaussian, kernels
from imgsvc_core.plan import compiler

MARKS = ("<!-- shortcuts -->", "<!-- /shortcuts -->")
COLUMNS = (
    "fast way",
    "instead of",
    "CPU ms",
    "the other way",
    "bytes",
    "the other way",
    "SSIMULACRA2",
    "levels off",
)

Off = Callable[[], AbstractContextManager[Any]]


@attrs.frozen
class Way:
    """A fast way: what it is done instead of, a request that takes it, and how it is switched off.

    ``general`` is the request of the other way if it is another one. ``least`` is the score that is enough.
    """

    title: str
    instead: str
    source: str
    request: Mapping[str, Any]
    off: Off = nullcontext
    general: Mapping[str, Any] | None = None
    least: float = 100


def _without(owner: Any, name: str, value: Any) -> Off:
    return lambda: patch.object(owner, name, value)


def _resize(width: int, height: int, format: str, **more: Any) -> dict[str, Any]:
    resize = {"width": width, "height": height, "mode": "stretch"}
    return {"resize": resize, "output": {"format": format}, **more}


def _blur(value: float) -> dict[str, Any]:
    return _resize(1362, 1112, "png", filter={"blur": {"mode": "gaussian", "value": value}})


def _subsampled(subsampling: str, **output: Any) -> dict[str, Any]:
    return {**_resize(720, 588, output["format"]), "output": {**output, "subsampling": subsampling}}


_LIBJPEG = 4  # an effort with which libjpeg writes photographs, too, so that color alone differs
_NOTHING_AT_ONCE = _without(compiler, "fits_array", lambda *_: False)
_EXACT_RESIZE = {"resize": {"width": 300, "scaling": "exact"}, "output": {"format": "png"}}
WAYS = (
    Way("small PNG in an array", "libvips", "small.png", _resize(32, 32, "png"), _NOTHING_AT_ONCE),
    Way("small WebP in an array", "libvips", "vga.jpg", _resize(200, 150, "webp"), _NOTHING_AT_ONCE),
    Way(
        "JPEG decoded at once by TurboJPEG", "line by line by libvips", "6mp.jpg", _resize(720, 588, "png"),
        _without(turbojpeg, "decoder", lambda: None),
    ),
    Way(
        "WebP written by Pillow", "libvips", "6mp.jpg", _resize(720, 588, "webp"),
        _without(webp, "_MOST_COPIED", 0),
    ),
    Way(
        "frames reduced together", "one by one", "20frames.gif", _resize(240, 196, "webp"),
        _without(strips, "suits", lambda *_: False),
    ),
    Way(
        "one palette for all frames of a GIF", "one for each", "20frames.gif", _resize(240, 196, "gif"),
        _without(gif, "_serves", lambda *_: False), least=70,
    ),
    Way(
        "boxes before a strong reduction, in 8 bits", "the kernel alone, in floats", "photo.png",
        {"resize": {"width": 300}, "output": {"format": "png"}}, general=_EXACT_RESIZE, least=90,
    ),
    Way(
        "blur by masks of whole numbers", "floats", "6mp.jpg", _blur(8),
        _without(kernels, "_integer_masks", lambda *_, **__: ()), least=95,
    ),
    Way(
        "wide blur of a smaller picture", "the whole mask", "6mp.jpg", _blur(60),
        _without(gaussian, "_WIDE_SIGMA", 1e9), least=95,
    ),
    Way(
        "JPEG with color at half the resolution", "all color", "6mp.jpg",
        _subsampled("420", format="jpg", effort=_LIBJPEG),
        general=_subsampled("444", format="jpg", effort=_LIBJPEG), least=80,
    ),
    Way(
        "AVIF with color at half the resolution", "all color", "6mp.jpg", _subsampled("420", format="avif"),
        general=_subsampled("444", format="avif"), least=75,
    ),
)  # fmt: skip


def main(page: str | None = None) -> int:
    """Print what each way saves and costs; 1 if a difference is larger than it may be."""
    rows: list[tuple[str, ...]] = []
    bounds: list[Bound] = []
    for way in WAYS:
        source = _source(way.source)
        fast = partial(_run, source, parse(way.request), nullcontext)
        general = partial(_run, source, parse(way.general or way.request), way.off)
        series = compare({"fast": timed(fast), "general": timed(general)}, rounds=5, repeats=2)
        results = [fast(), general()]
        shown = [on_white(data) for data in results]
        score = 100.0 if results[0] == results[1] else ssimulacra2(shown[1], shown[0])
        levels = int(np.abs(shown[0].astype(int) - shown[1]).max())
        times = [f"{one.cpu * 1e3:.2f}" for one in series.values()]
        sizes = [f"{len(data):,}" for data in results]
        rows.append((way.title, way.instead, *times, *sizes, f"{score:.1f}", str(levels)))
        bounds.append(Bound(f"{way.title}: score", score, way.least, at_least=True))
        print(rows[-1], flush=True)
    print_table(COLUMNS, rows)
    write_table(page, MARKS, COLUMNS, rows)
    return verdict(bounds)


def _source(name: str) -> bytes:
    if name != "photo.png":
        return picture(name).read_bytes()
    file = io.BytesIO()
    Image.fromarray(photos.mosaic(2725, 2225)).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _run(source: bytes, spec: Any, off: Off) -> bytes:
    with off():
        return process(source, spec, threads=1).data


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(*sys.argv[1:]))
