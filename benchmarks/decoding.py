"""How near pictures that are decoded small come to those made of all pixels, for each kind of decoder.

``python -m benchmarks.decoding docs/pipeline.md`` also writes the two tables there. Truth is SSIMULACRA2 of
the pixels, against Lanczos of all pixels by Pillow. Drawings in SVG are compared with what resvg draws at
four times the size, reduced by boxes. The ways to decode WebP are also compared in time: CPU of one thread
beside sharp's, which decodes the same file for the same baseline JPEG.
"""

from __future__ import annotations

import io
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyvips
import resvg_py
from PIL import Image
from tests.support.photos import Pixels, as_vips

import imgsvc_core as imgsvc
from benchmarks.harness import Bound, compare, print_table, stay_on_one_cpu, timed, verdict, write_table
from benchmarks.pictures import FOLDER
from benchmarks.sharp import Sharp, sharp_process
from benchmarks.sharpness import photograph
from benchmarks.truth import on_white, ssimulacra2
from imgsvc_core.plan import decoding

KINDS_MARKS = ("<!-- decoding -->", "<!-- /decoding -->")
KINDS_COLUMNS = ("format", "decoded at", "if it is reduced by at least", "SSIMULACRA2: mean", "lowest")
WEBP_MARKS = ("<!-- webp decoding -->", "<!-- /webp decoding -->")
WEBP_COLUMNS = (
    "the decoder leaves the resampler", "CPU over sharp's: median", "highest", "SSIMULACRA2: mean", "lowest",
)  # fmt: skip

_PHOTOGRAPHS = (
    "mosaic of 2000 x 1500, 4:2:0",
    "astronaut of 2048 x 2048, 4:2:0",
    "coffee of 3000 x 2000, 4:2:0",
)
_DRAWINGS = ("examples/pictures/logo.svg", "web/public/icon.svg")
_FACTORS = (2.1, 2.9, 4.3, 6.1, 9.7)
_FINER = 4  # times the size at which resvg draws
# What the scaler of WebP leaves to the resampler, and the least total factor for it.
_WAYS = {
    "nothing, as in sharp": (1.0, 1.0),
    "a factor of 1.4, as here": (1.4, 2.0),
    "a factor of 1.9": (1.9, 2.0),
    "everything": (1.0, 1e9),
}

Write = Callable[[Pixels], bytes]


def _by_imgsvc(pixels: Pixels, **output: Any) -> bytes:
    return imgsvc.process(pixels, {"output": output}).data


def _pyramid(pixels: Pixels) -> bytes:
    return bytes(as_vips(pixels).tiffsave_buffer(tile=True, pyramid=True, compression="deflate"))


_JPEG = partial(_by_imgsvc, format="jpg", quality=92)
_KINDS: tuple[tuple[str, str, str, Write, Sequence[float]], ...] = (
    ("JPEG", "1/2", "3", _JPEG, (3.05, 3.7, 4.9)),
    ("JPEG", "1/4", "5", _JPEG, (5.05, 6.3, 8.8)),
    ("JPEG", "1/8", "9", _JPEG, (9.1, 11.7, 15.3)),
    ("JPEG 2000", "levels in the file", "1.5 times the factor of the level",
     partial(_by_imgsvc, format="jp2", quality=95), _FACTORS),
    ("pyramidal TIFF", "levels in the file", "1.5 times the factor of the level", _pyramid, _FACTORS),
    ("WebP", "1.4 times the result", "2", partial(_by_imgsvc, format="webp", quality=92), _FACTORS),
    ("HEIC", "full size", "–", partial(_by_imgsvc, format="heic", quality=90), _FACTORS),
    ("PNG, GIF, others", "full size", "–", partial(_by_imgsvc, format="png", effort=0), _FACTORS),
    ("AVIF", "full size", "–", partial(_by_imgsvc, format="avif", quality=90), _FACTORS),
)  # fmt: skip


def main(page: str | None = None) -> int:
    """Print both tables; 1 if a score is lower than the page on the pipeline lets one expect."""
    photographs = [_decoded(photograph(name).read_bytes()) for name in _PHOTOGRAPHS]
    kinds = {row[:3]: _scores(row[3], row[4], photographs) for row in _KINDS}
    kinds["SVG", "the size of the result, also larger", "any"] = [
        score for path in _DRAWINGS for side in (100, 223, 480) for score in _drawn(Path(path), side)
    ]
    rows = [(*row, *_told(scores)) for row, scores in kinds.items()]
    print_table(KINDS_COLUMNS, rows)
    write_table(page, KINDS_MARKS, KINDS_COLUMNS, rows, ["---", "---", "---", "---:", "---:"])
    ways = _ways_of_webp(photographs)
    write_table(page, WEBP_MARKS, WEBP_COLUMNS, ways, ["---", "---:", "---:", "---:", "---:"])
    print_table(WEBP_COLUMNS, ways)
    return verdict(
        [Bound(f"{row[0]} at {row[1]}", min(found), 85, at_least=True) for row, found in kinds.items()]
    )


def _told(scores: Sequence[float]) -> tuple[str, str]:
    return f"{statistics.mean(scores):.1f}", f"{min(scores):.1f}"


def _decoded(data: bytes) -> Pixels:
    return np.asarray(imgsvc.process(data).to_numpy())


def _scores(write: Write, factors: Sequence[float], photographs: Sequence[Pixels]) -> list[float]:
    """Return the scores of all photographs in a format, reduced by some factors."""
    found = []
    for pixels in photographs:
        data = write(pixels)
        whole = Image.fromarray(_decoded(data))
        for factor in factors:
            size = round(whole.width / factor), round(whole.height / factor)
            truth = np.asarray(whole.resize(size, Image.Resampling.LANCZOS))
            found.append(ssimulacra2(truth, on_white(_small(data, size, format="png", effort=0))))
    return found


def _small(data: bytes, size: tuple[int, int], **output: Any) -> bytes:
    resize = {"width": size[0], "height": size[1], "mode": "stretch"}
    return imgsvc.process(data, {"resize": resize, "output": output}, threads=1).data


def _drawn(path: Path, side: int) -> Iterator[float]:
    """Yield the score of a drawing at a width."""
    text = path.read_text(encoding="utf-8")
    finer = Image.open(io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=text, width=_FINER * side))))
    truth = io.BytesIO()
    finer.reduce(_FINER).save(truth, "PNG")
    size = -(-finer.width // _FINER), -(-finer.height // _FINER)
    yield ssimulacra2(on_white(truth.getvalue()), on_white(_small(path.read_bytes(), size, format="png")))


def _ways_of_webp(photographs: Sequence[Pixels]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    with sharp_process() as sharp:
        for title, way in _WAYS.items():
            with _leaving(*way):
                scores = _scores(partial(_by_imgsvc, format="webp", quality=92), _FACTORS, photographs)
                ratios = [_ratio(sharp, pixels, factor) for pixels in photographs for factor in _FACTORS]
            times = f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}"
            rows.append((title, *times, *_told(scores)))
            print(rows[-1], flush=True)
    return rows


@contextmanager
def _leaving(factor: float, least: float) -> Iterator[None]:
    """Let the scaler of WebP leave a factor to the resampler."""
    with patch.object(decoding, "_SCALER_LEAVES", factor), patch.object(decoding, "_SCALER_LEAST", least):
        yield


def _ratio(sharp: Sharp, pixels: Pixels, factor: float) -> float:
    """Return our CPU time over that of sharp, for a WebP that is reduced by a factor."""
    height, width, _ = pixels.shape
    path = FOLDER / f"decoding-{width}x{height}.webp"  # sharp's process reads a file once
    path.write_bytes(data := _by_imgsvc(pixels, format="webp", quality=92))
    size = round(width / factor), round(height / factor)
    jpeg: Mapping[str, Any] = {"format": "jpg", "quality": 80, "encoding": "baseline"}
    theirs: dict[str, Any] = {
        "input": str(path), "buffered": True, "resize": {"width": size[0], "height": size[1]},
        "format": "jpeg", "save": {"quality": 80},
    }  # fmt: skip
    series = compare(
        {
            "imgsvc": timed(partial(_small, data, size, **jpeg)),
            "sharp": lambda repeats: sharp.timing(repeats, **theirs),
        },
        rounds=5,
        repeats=1,
    )
    best = {name: min(one.cpu for one in found.rounds) for name, found in series.items()}
    return best["imgsvc"] / best["sharp"]


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main(*sys.argv[1:]))
