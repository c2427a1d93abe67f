"""Truth and time of scaled decoding beside sharp: twelve photographs, each to many widths, with one thread.

``python -m benchmarks.sharpness docs/performance.md`` also writes the table there. Truth is SSIMULACRA2 of
the pixels, written as PNG, against Lanczos of the whole picture. Times are of the CPU, for baseline JPEGs of
quality 80. ``--widths 40`` measures 40 widths instead of eight.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyvips
from PIL import Image
from tests.support import photos
from tests.support.photos import Pixels

from benchmarks.harness import (
    Bound,
    Timing,
    compare,
    options_of,
    print_table,
    stay_on_one_cpu,
    timed,
    verdict,
    write_table,
)
from benchmarks.pictures import FOLDER
from benchmarks.sharp import Sharp, sharp_process
from benchmarks.truth import on_white, reduced, ssimulacra2
from imgsvc_core import parse, process

MARKS = ("<!-- sharpness -->", "<!-- /sharpness -->")
COLUMNS = (
    "width", "photographs", "fast: mean", "lowest", "exact: mean", "lowest", "sharp: mean", "lowest",
    "CPU over sharp's: median", "highest",
)  # fmt: skip
NARROWEST, WIDEST = 100, 1920
ROUNDS, REPEATS = 5, 2
_TILE = (450, 300)


def _tiles(width: int, height: int) -> Pixels:
    """Photographs side by side at their own size, with all their detail."""
    cells = [photos.photo(name)[: _TILE[1], : _TILE[0]] for name in ("astronaut", "coffee", "cat", "rocket")]
    across, down = -(-width // _TILE[0]), -(-height // _TILE[1])
    rows = [np.hstack([cells[(row + column) % 4] for column in range(across)]) for row in range(down)]
    return np.vstack(rows)[:height, :width]


def _enlarged(name: str, width: int, height: int) -> Pixels:
    image = photos.as_vips(photos.photo(name))
    return photos.as_pixels(image.thumbnail_image(width, height=height, crop="low"))


PHOTOGRAPHS: Mapping[str, tuple[Callable[[], Pixels], int, int]] = {
    "mosaic of 2725 x 2225, 4:2:0": (partial(photos.mosaic, 2725, 2225), 95, 2),
    "mosaic of 2725 x 2225, 4:4:4": (partial(photos.mosaic, 2725, 2225), 90, 0),
    "mosaic of 4032 x 3024, 4:2:0": (partial(photos.mosaic, 4032, 3024), 92, 2),
    "mosaic of 2000 x 1500, 4:2:0": (partial(photos.mosaic, 2000, 1500), 90, 2),
    "mosaic of 3000 x 2001, 4:4:4": (partial(photos.mosaic, 3000, 2001), 95, 0),
    "tiles of 2401 x 1799, 4:2:0": (partial(_tiles, 2401, 1799), 90, 2),
    "tiles of 3264 x 2448, 4:4:4": (partial(_tiles, 3264, 2448), 92, 0),
    "tiles of 4032 x 3024, 4:2:0": (partial(_tiles, 4032, 3024), 95, 2),
    "astronaut of 2048 x 2048, 4:2:0": (partial(_enlarged, "astronaut", 2048, 2048), 95, 2),
    "coffee of 3000 x 2000, 4:2:0": (partial(_enlarged, "coffee", 3000, 2000), 90, 2),
    "galaxies of 2560 x 2232, 4:4:4": (partial(_enlarged, "galaxies", 2560, 2232), 92, 0),
    "retina of 2822 x 2822, 4:2:0": (partial(_enlarged, "retina", 2822, 2822), 90, 2),
}
"""Pixels, JPEG quality, and Pillow's number of the sampling of color."""


@attrs.frozen
class Found:
    """Of one photograph at one width: three scores, and our CPU time over that of sharp."""

    fast: float
    exact: float
    sharp: float
    ratio: float


def main() -> int:
    options = options_of(__doc__, page=True, widths=8)
    widths = [round(width) for width in np.geomspace(NARROWEST, WIDEST, options.widths)]
    found: dict[int, list[Found]] = {width: [] for width in widths}
    with sharp_process() as sharp:
        for name in PHOTOGRAPHS:
            for width in widths:
                found[width].append(_measure(photograph(name), width, sharp))
            print(name, flush=True)
    rows = [(str(width), str(len(row)), *_row(row)) for width, row in found.items()]
    print_table(COLUMNS, rows)
    write_table(options.page, MARKS, COLUMNS, rows)
    return verdict(_bounds([one for row in found.values() for one in row]))


def photograph(name: str) -> Path:
    """Return the path of one of the photographs, which are made once."""
    path = FOLDER / f"{name.replace(' ', '-').replace(':', '')}.jpg"
    if not path.exists():
        draw, quality, subsampling = PHOTOGRAPHS[name]
        FOLDER.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        Image.fromarray(draw()).save(unfinished, "JPEG", quality=quality, subsampling=subsampling)
        unfinished.rename(path)
    return path


def _measure(path: Path, width: int, sharp: Sharp) -> Found:
    source = path.read_bytes()
    with Image.open(path) as image:
        height = max(1, round(image.height * width / image.width))
    kept = path.with_suffix(".sharp")
    size = (width, height)
    by_sharp = partial(_by_sharp, sharp, path, size)
    jpeg = {"format": "jpg", "quality": 80, "encoding": "baseline"}
    series = compare(
        {
            "imgsvc": timed(partial(_by_imgsvc, source, size, **jpeg)),
            "sharp": lambda repeats: by_sharp(repeats, format="jpeg", save={"quality": 80}),
        },
        rounds=ROUNDS,
        repeats=REPEATS,
    )
    by_sharp(1, format="png", save={}, keep=str(kept))
    expected = reduced(path, width, height)
    made = {
        scaling: _by_imgsvc(source, size, scaling, format="png", effort=0) for scaling in ("fast", "exact")
    }
    fast = ssimulacra2(expected, on_white(made["fast"]))
    same = made["exact"] == made["fast"]  # where all pixels are decoded anyway
    return Found(
        fast,
        fast if same else ssimulacra2(expected, on_white(made["exact"])),
        ssimulacra2(expected, on_white(kept.read_bytes())),
        min(one.cpu for one in series["imgsvc"].rounds) / min(one.cpu for one in series["sharp"].rounds),
    )


def _by_imgsvc(source: bytes, size: tuple[int, int], scaling: str = "fast", **output: Any) -> bytes:
    resize = {"width": size[0], "height": size[1], "mode": "stretch", "scaling": scaling}
    return process(source, parse({"resize": resize, "output": output}), threads=1).data


def _by_sharp(sharp: Sharp, path: Path, size: tuple[int, int], repeats: int, **options: Any) -> Timing:
    resize = {"width": size[0], "height": size[1]}
    return sharp.timing(repeats, input=str(path), buffered=True, resize=resize, **options)


def _row(row: Sequence[Found]) -> list[str]:
    scores = [[getattr(one, name) for one in row] for name in ("fast", "exact", "sharp")]
    cells = [f"{value:.1f}" for score in scores for value in (statistics.mean(score), min(score))]
    ratios = [one.ratio for one in row]
    return [*cells, f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}"]


def _bounds(found: Sequence[Found]) -> list[Bound]:
    return [
        Bound("score less sharp's, lowest", min(one.fast - one.sharp for one in found), -0.5, at_least=True),
        Bound("score of exact, lowest", min(one.exact for one in found), 95, at_least=True),
        Bound("CPU over sharp's, median", statistics.median(one.ratio for one in found), 0.95),
        Bound("CPU over sharp's, highest", max(one.ratio for one in found), 1.15),
    ]


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    stay_on_one_cpu()
    sys.exit(main())
