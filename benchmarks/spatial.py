"""Filters and sharpening: against libvips' own operations, ImageMagick and Pillow.

``python -m benchmarks.spatial`` works on decoded photographs in memory with one thread each;
``python -m benchmarks.spatial docs/performance.md`` also writes the table of throughputs there. A motion blur
by its full mask is measured on a strip of the picture and counted by its area: the cost of a convolution is
proportional to it.
"""

from __future__ import annotations

import math
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyvips
from PIL import Image, ImageFilter, ImageOps

from benchmarks.harness import Bound, compare, print_table, timed, verdict, write_table
from benchmarks.pictures import on_one_thread, picture
from benchmarks.truth import ssimulacra2
from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.pixels.spatial.gaussian import gaussian_blur, gaussian_sigma
from imgsvc_core.pixels.spatial.halftone import halftone, halftone_pitch
from imgsvc_core.pixels.spatial.kernels import line_weights
from imgsvc_core.pixels.spatial.motion import motion_blur, motion_length
from imgsvc_core.pixels.spatial.pixellate import pixellate, pixellate_cell
from imgsvc_core.pixels.spatial.sharpen import sharpen, sharpen_gain, sharpen_sigma, unsharp, unsharp_sigma
from imgsvc_core.pixels.spatial.vignette import vignette
from imgsvc_core.pixels.spatial.zoom import zoom_blur, zoom_depth
from imgsvc_core.plan.color import matrices
from imgsvc_core.plan.color.matrices import Matrix
from imgsvc_core.plan.color.steps import filtering
from imgsvc_core.plan.folding import fold
from imgsvc_core.spec import Color, Duotone, Filter, Isolate, Monochrome, Sepia

LARGE_VALUE = 100  # of gaussian blur: the largest radius there is
MOTION_LENGTH, MOTION_ANGLE = 300, 30
STRIP_LINES = 96
ROUNDS = 3

COLUMNS = ("imgsvc", "ImageMagick", "Pillow")
MARKS = ("<!-- throughputs -->", "<!-- end of throughputs -->")
TRUTHS = ("SSIMULACRA2 of imgsvc", "of Pillow")

BLUE = Color(64, 96, 255)
MONOCHROME, SEPIA = matrices.monochrome(60, BLUE.rgb, BLUE.alpha), matrices.sepia(60)
POINTWISE: Mapping[str, Filter] = {
    "isolate 0.2": Isolate(color=Color(224, 80, 32), threshold=0.2),
    "monochrome 60": Monochrome(value=60, color=BLUE),
    "sepia 60": Sepia(value=60),
    "duotone": Duotone(light=Color(255, 224, 160), dark=Color(16, 32, 96)),
}


def main(page: str | None = None) -> int:
    """Print throughputs and ratios for a large and a small photograph; 1 where a bound is missed.

    Where a page is given, the throughputs are written into it.
    """
    bounds: list[Bound] = []
    tables: dict[str, list[tuple[str, ...]]] = {}
    for name in ("12mp.jpg", "2mp.jpg"):
        photo = on_one_thread(pyvips.Image.new_from_file(str(picture(name))).copy_memory())
        tables[name] = _throughputs(photo)
        print_table((f"{name}, MP/s", *COLUMNS), tables[name])
        bounds.append(_gaussian(name, photo))
        if name == "12mp.jpg":
            bounds.append(_motion(name, photo))
    scores = truths()
    print_table(("filter", *TRUTHS), [(what, *scores[what]) for what in scores])
    if page is not None:
        _write(page, tables, scores)
    return verdict(bounds)


def _write(
    page: str, tables: Mapping[str, Sequence[tuple[str, ...]]], scores: Mapping[str, tuple[str, str]]
) -> None:
    """Write what was found for both photographs into a Markdown page."""
    head = [
        "filter",
        *(f"{column}, {name.removesuffix('.jpg')}" for name in tables for column in COLUMNS),
        *TRUTHS,
    ]
    lines = [
        [rows[0][0], *(cell for row in rows for cell in row[1:]), *scores.get(rows[0][0], ("-", "-"))]
        for rows in zip(*tables.values(), strict=True)
    ]
    write_table(page, MARKS, head, lines, ["---", *["---:"] * (len(head) - 1)])


def _throughputs(photo: pyvips.Image) -> list[tuple[str, str, str, str]]:
    """For each filter, megapixels per second of ours and of those that have the operation."""
    megapixels = photo.width * photo.height / 1e6
    filters = _filters(photo)
    ours = compare({what: timed(_evaluated(run)) for what, run in filters.items()}, rounds=ROUNDS, repeats=1)
    magick = _magick(photo, min(photo.width, photo.height))
    pillow = {
        what: statistics.median(timed(run)(1).wall for _ in range(ROUNDS))
        for what, run in _pillow(photo).items()
    }
    return [
        (
            what,
            f"{megapixels / series.wall:.0f}",
            f"{megapixels / magick[what]:.1f}" if what in magick else "-",
            f"{megapixels / pillow[what]:.0f}" if what in pillow else "-",
        )
        for what, series in ours.items()
    ]


def _filters(photo: pyvips.Image) -> dict[str, Callable[[], pyvips.Image]]:
    extent = min(photo.width, photo.height)
    return {
        **{what: _pointwise(photo, operation) for what, operation in POINTWISE.items()},
        "gaussian 30": lambda: gaussian_blur(photo, gaussian_sigma(30, extent)),
        "motion 60": lambda: motion_blur(photo, motion_length(60, extent), 30),
        "zoom 60": lambda: zoom_blur(photo, zoom_depth(60)),
        "pixellate 30": lambda: pixellate(photo, pixellate_cell(30, extent)),
        "vignette 60": lambda: vignette(photo, 0.6, 0.3),
        "halftone 30": lambda: halftone(photo, halftone_pitch(30, extent)),
        "sharpen 60": lambda: sharpen(photo, sharpen_gain(60), sharpen_sigma(extent)),
        "unsharp 60": lambda: unsharp(photo, 0.6, unsharp_sigma(extent)),
    }


def truths() -> dict[str, tuple[str, str]]:
    """Scores of our results and Pillow's beside those in floats, of filters that both define alike."""
    photo = pyvips.Image.new_from_file(str(picture("2mp.jpg"))).copy_memory()
    sigma = gaussian_sigma(30, min(photo.width, photo.height))
    exact = {
        "monochrome 60": photo.recomb([list(row) for row in MONOCHROME]),
        "sepia 60": photo.recomb([list(row) for row in SEPIA]),
        "gaussian 30": photo.cast("float").gaussblur(sigma, precision="float", min_ampl=0.001),
    }
    ours, pillow = _filters(photo), _pillow(photo)
    scores = {}
    for what, floats in exact.items():
        expected = floats.rint().cast("uchar").numpy()
        shown = ours[what]().numpy(), np.asarray(pillow[what]())
        scores[what] = f"{ssimulacra2(expected, shown[0]):.1f}", f"{ssimulacra2(expected, shown[1]):.1f}"
    return scores


def _pointwise(photo: pyvips.Image, operation: Filter) -> Callable[[], pyvips.Image]:
    step = filtering(operation)
    assert step is not None
    return lambda: apply_blocks(photo, fold([step]))


def _gaussian(name: str, photo: pyvips.Image) -> Bound:
    sigma = gaussian_sigma(LARGE_VALUE, min(photo.width, photo.height))
    series = compare(
        {
            "ours": timed(_evaluated(lambda: gaussian_blur(photo, sigma))),
            "libvips": timed(_evaluated(lambda: photo.gaussblur(sigma))),
        },
        rounds=ROUNDS,
        repeats=1,
    )
    ratio = series["ours"].times_faster_than(series["libvips"])
    return Bound(f"{name}: gaussian of {sigma:.0f} px, times faster than libvips'", ratio, 3, at_least=True)


def _motion(name: str, photo: pyvips.Image) -> Bound:
    angle = math.radians(MOTION_ANGLE)
    weights = line_weights(MOTION_LENGTH * math.cos(angle), -MOTION_LENGTH * math.sin(angle))
    mask = pyvips.Image.new_from_array(np.asarray(weights).tolist())
    strip = on_one_thread(photo.crop(0, 0, photo.width, STRIP_LINES + mask.height).copy_memory())
    series = compare(
        {
            "ours": timed(_evaluated(lambda: motion_blur(photo, MOTION_LENGTH, MOTION_ANGLE))),
            "full mask": timed(
                _evaluated(lambda: strip.conv(mask, precision="float").crop(0, 0, photo.width, STRIP_LINES))
            ),
        },
        rounds=ROUNDS,
        repeats=1,
    )
    whole = series["full mask"].wall * photo.height / STRIP_LINES
    return Bound(
        f"{name}: motion of {MOTION_LENGTH} px over its full mask", series["ours"].wall / whole, 1 / 15
    )


def _magick(photo: pyvips.Image, extent: int) -> dict[str, float]:
    """Seconds of ImageMagick's own operations, decoding and writing taken off."""
    program = shutil.which("magick") or shutil.which("convert-im6.q16")
    if program is None:
        print("ImageMagick is not installed: its column stays empty.")
        return {}
    cell, pitch = pixellate_cell(30, extent), halftone_pitch(30, extent)
    cells = f"{photo.width / cell:.0f}x{photo.height / cell:.0f}!"
    dots = max((size for size in (4, 6, 8) if size <= pitch), default=4)
    operations = {
        "monochrome 60": ["-color-matrix", _matrix_text(MONOCHROME)],
        "sepia 60": ["-color-matrix", _matrix_text(SEPIA)],
        "duotone": ["-colorspace", "gray", "+level-colors", "#102060,#FFE0A0"],
        "pixellate 30": ["-scale", cells, "-sample", f"{photo.width}x{photo.height}!"],
        "vignette 60": ["-background", "black", "-vignette", "0x10"],
        "halftone 30": ["-ordered-dither", f"h{dots}x{dots}a"],
        "gaussian 30": ["-blur", f"0x{gaussian_sigma(30, extent):.2f}"],
        "motion 60": ["-motion-blur", f"0x{motion_length(60, extent) / 6:.2f}+30"],
        "sharpen 60": ["-sharpen", f"0x{sharpen_sigma(extent):.2f}"],
        "unsharp 60": ["-unsharp", f"0x{unsharp_sigma(extent):.2f}+0.6+0"],
    }
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "photo.tiff"
        photo.tiffsave(str(source))
        limits = [program, "-limit", "thread", "1", str(source)]
        bare = timed(_command([*limits, "null:"]))(1).wall
        return {
            what: max(timed(_command([*limits, *arguments, "null:"]))(1).wall - bare, 1e-3)
            for what, arguments in operations.items()
        }


def _pillow(photo: pyvips.Image) -> dict[str, Callable[[], object]]:
    extent = min(photo.width, photo.height)
    image = Image.fromarray(photo.numpy())
    sharp = unsharp_sigma(extent)
    cell = pixellate_cell(30, extent)
    cells = round(photo.width / cell), round(photo.height / cell)

    def vignette() -> Image.Image:
        shade = Image.radial_gradient("L").resize(image.size)
        return Image.composite(Image.new("RGB", image.size), image, shade)

    return {
        "monochrome 60": lambda: image.convert("RGB", _with_offsets(MONOCHROME)),
        "sepia 60": lambda: image.convert("RGB", _with_offsets(SEPIA)),
        "duotone": lambda: ImageOps.colorize(ImageOps.grayscale(image), "#102060", "#FFE0A0"),
        "pixellate 30": lambda: image.resize(cells, Image.Resampling.BOX).resize(
            image.size, Image.Resampling.NEAREST
        ),
        "vignette 60": vignette,
        "gaussian 30": lambda: image.filter(ImageFilter.GaussianBlur(gaussian_sigma(30, extent))),
        "unsharp 60": lambda: image.filter(ImageFilter.UnsharpMask(sharp, 60, 0)),
    }


def _matrix_text(matrix: Matrix) -> str:
    return " ".join(f"{number:.6f}" for row in matrix for number in row)


def _with_offsets(matrix: Matrix) -> tuple[float, ...]:
    return tuple(number for row in matrix for number in (*row, 0.0))


def _command(arguments: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(arguments, check=True)


def _evaluated(run: Callable[[], pyvips.Image]) -> Callable[[], object]:
    return lambda: run().write_to_memory()


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    sys.exit(main(*sys.argv[1:]))
