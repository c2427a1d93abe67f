"""Pixels for NumPy without an encoder, beside Pillow: pictures of 224 pixels, and whole ones of 6 megapixels.

One thread, on one CPU, from bytes to an array. Beside each time stands the truth: the most levels of 255 that
whole pictures are off from Pillow's decoder, and the SSIMULACRA2 of smaller ones against all pixels reduced
by Lanczos. Pillow reduces in two ways: ``thumbnail``, which lets the decoder shrink, and ``resize`` of all
pixels. ``python -m benchmarks.pixels docs/howto/pixels.md`` also writes the table there.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from functools import partial

import attrs
import numpy as np
import pyvips
from PIL import Image
from tests.support.photos import Pixels

from benchmarks.harness import (
    Bound,
    Series,
    compare,
    print_table,
    stay_on_one_cpu,
    timed,
    verdict,
    write_table,
)
from benchmarks.pictures import picture
from benchmarks.truth import ssimulacra2
from imgsvc_core import Resize, Spec, process

_SIDE = 224
_MOST_OVER_PILLOW = 1.2
_MARKS = ("<!-- pixels -->", "<!-- /pixels -->")
_COLUMNS = ("pixels of", "by", "CPU ms", "spread", "truth", "CPU of imgsvc over it")


@attrs.frozen
class Job:
    """A file, and the width that is wanted if not all pixels are."""

    title: str
    data: bytes
    width: int | None = None

    @property
    def contenders(self) -> Mapping[str, Callable[[], Pixels]]:
        if self.width is None:
            return {"imgsvc": self._ours, "Pillow": self._whole}
        return {"imgsvc": self._ours, "Pillow": self._thumbnail, "Pillow, resize": self._resized}

    def truth(self, pixels: Pixels) -> str:
        if self.width is None:
            return f"{int(np.abs(pixels.astype(int) - self._whole()).max())} levels"
        exact = self._resized()
        return f"{ssimulacra2(exact, pixels):.1f}"

    def _ours(self) -> Pixels:
        spec = Spec() if self.width is None else Resize(width=self.width)
        return process(self.data, spec, threads=1).to_numpy()

    def _whole(self) -> Pixels:
        return np.asarray(Image.open(io.BytesIO(self.data)).convert("RGB"))

    def _thumbnail(self) -> Pixels:
        image = Image.open(io.BytesIO(self.data))
        image.thumbnail(self._size(image), Image.Resampling.LANCZOS)
        return np.asarray(image)

    def _resized(self) -> Pixels:
        image = Image.open(io.BytesIO(self.data))
        return np.asarray(image.resize(self._size(image), Image.Resampling.LANCZOS))

    def _size(self, image: Image.Image) -> tuple[int, int]:
        assert self.width is not None
        return self.width, round(image.height * self.width / image.width)


def main(page: str | None = None) -> int:
    """Print times and truth; 1 if a bound is missed."""
    rows: list[tuple[str, ...]] = []
    bounds: list[Bound] = []
    for job in _jobs():
        contenders = job.contenders
        repeats = 50 if len(job.data) < 1 << 17 else 3
        series = compare({name: timed(run) for name, run in contenders.items()}, rounds=9, repeats=repeats)
        rows += [_row(job, name, series) for name in contenders]
        over = 1 / series["imgsvc"].times_cheaper_than(series["Pillow"])
        bounds.append(Bound(f"{job.title}: CPU over Pillow", over, _MOST_OVER_PILLOW, unit="x"))
    print_table(_COLUMNS, rows)
    write_table(page, _MARKS, _COLUMNS, rows)
    return verdict(bounds)


def _row(job: Job, name: str, series: Mapping[str, Series]) -> tuple[str, ...]:
    one = series[name]
    over = "" if name == "imgsvc" else f"{1 / series['imgsvc'].times_cheaper_than(one):.2f}"
    truth = job.truth(job.contenders[name]())
    return job.title, name, f"{one.cpu * 1e3:.2f}", f"{one.spread:.0%}", truth, over


def _jobs() -> list[Job]:
    large, vga = (picture(name).read_bytes() for name in ("6mp.jpg", "vga.jpg"))
    small = Image.open(io.BytesIO(vga)).resize((_SIDE, 168), Image.Resampling.LANCZOS)
    as_file = partial(_encoded, Image.open(io.BytesIO(large)))
    return [
        Job("a 224 px JPEG", _encoded(small, "JPEG", quality=90)),
        Job("a 224 px PNG", _encoded(small, "PNG")),
        Job("a 224 px WebP", _encoded(small, "WEBP", quality=80)),
        Job("a JPEG of 640 px, at 224 px", vga, _SIDE),
        Job("a PNG of 640 px, at 224 px", _encoded(Image.open(io.BytesIO(vga)), "PNG"), _SIDE),
        Job("a WebP of 640 px, at 224 px", _encoded(Image.open(io.BytesIO(vga)), "WEBP", quality=80), _SIDE),
        Job("a JPEG of 6 MP, at 224 px", large, _SIDE),
        Job("a JPEG of 6 MP", large),
        Job("a PNG of 6 MP", as_file("PNG", compress_level=1)),
        Job("a WebP of 6 MP", as_file("WEBP", method=0)),
    ]


def _encoded(image: Image.Image, format: str, **options: int) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(*sys.argv[1:]))
