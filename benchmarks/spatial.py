"""Filters that look at neighbours: against libvips' own operations, ImageMagick and Pillow.

``python -m benchmarks.spatial`` works on decoded photographs in memory with one thread each. A motion blur
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
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyvips
from PIL import Image, ImageFilter

from benchmarks.harness import Bound, compare, print_table, timed, verdict
from benchmarks.pictures import picture
from imgsvc_core.pixels import spatial
from imgsvc_core.pixels.spatial import amounts
from imgsvc_core.pixels.spatial.kernels import line_weights

LARGE_VALUE = 100  # of gaussian blur: the largest radius there is
MOTION_LENGTH, MOTION_ANGLE = 300, 30
STRIP_LINES = 96
ROUNDS = 3


def main() -> int:
    """Print throughputs and ratios for a large and a small photograph; 1 where a bound is missed."""
    bounds: list[Bound] = []
    for name in ("12mp.jpg", "2mp.jpg"):
        photo = _on_one_thread(pyvips.Image.new_from_file(str(picture(name))).copy_memory())
        _throughputs(name, photo)
        bounds.append(_gaussian(name, photo))
        if name == "12mp.jpg":
            bounds.append(_motion(name, photo))
    return verdict(bounds)


def _throughputs(name: str, photo: pyvips.Image) -> None:
    extent = min(photo.width, photo.height)
    megapixels = photo.width * photo.height / 1e6
    filters: dict[str, Callable[[], pyvips.Image]] = {
        "gaussian 30": lambda: spatial.gaussian_blur(photo, amounts.gaussian_sigma(30, extent)),
        "motion 60": lambda: spatial.motion_blur(photo, amounts.motion_length(60, extent), 30),
        "zoom 60": lambda: spatial.zoom_blur(photo, amounts.zoom_depth(60)),
        "pixellate 30": lambda: spatial.pixellate(photo, amounts.pixellate_cell(30, extent)),
        "vignette 60": lambda: spatial.vignette(photo, amounts.vignette_strength(60), 0.3),
        "halftone 30": lambda: spatial.halftone(photo, amounts.halftone_pitch(30, extent)),
        "sharpen 60": lambda: spatial.sharpen(photo, amounts.sharpen_gain(60), amounts.sharpen_sigma(extent)),
        "unsharp 60": lambda: spatial.unsharp(photo, amounts.unsharp_gain(60), amounts.unsharp_sigma(extent)),
    }
    ours = compare({what: timed(_evaluated(run)) for what, run in filters.items()}, rounds=ROUNDS, repeats=1)
    magick, pillow = _magick(photo, extent), _pillow(photo, extent)
    rows = [
        (
            what,
            f"{megapixels / series.wall:.0f}",
            f"{megapixels / magick[what]:.1f}" if what in magick else "-",
            f"{megapixels / pillow[what]:.0f}" if what in pillow else "-",
        )
        for what, series in ours.items()
    ]
    print_table((f"{name}, MP/s", "imgsvc", "ImageMagick", "Pillow"), rows)


def _gaussian(name: str, photo: pyvips.Image) -> Bound:
    sigma = amounts.gaussian_sigma(LARGE_VALUE, min(photo.width, photo.height))
    series = compare(
        {
            "ours": timed(_evaluated(lambda: spatial.gaussian_blur(photo, sigma))),
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
    strip = _on_one_thread(photo.crop(0, 0, photo.width, STRIP_LINES + mask.height).copy_memory())
    series = compare(
        {
            "ours": timed(_evaluated(lambda: spatial.motion_blur(photo, MOTION_LENGTH, MOTION_ANGLE))),
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
    operations = {
        "gaussian 30": ["-blur", f"0x{amounts.gaussian_sigma(30, extent):.2f}"],
        "motion 60": ["-motion-blur", f"0x{amounts.motion_length(60, extent) / 6:.2f}+30"],
        "sharpen 60": ["-sharpen", f"0x{amounts.sharpen_sigma(extent):.2f}"],
        "unsharp 60": ["-unsharp", f"0x{amounts.unsharp_sigma(extent):.2f}+0.6+0"],
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


def _pillow(photo: pyvips.Image, extent: int) -> dict[str, float]:
    image = Image.fromarray(photo.numpy())
    sharp = amounts.unsharp_sigma(extent)
    operations: dict[str, Callable[[], object]] = {
        "gaussian 30": lambda: image.filter(ImageFilter.GaussianBlur(amounts.gaussian_sigma(30, extent))),
        "unsharp 60": lambda: image.filter(ImageFilter.UnsharpMask(sharp, 60, 0)),
    }
    return {
        what: statistics.median(timed(run)(1).wall for _ in range(ROUNDS)) for what, run in operations.items()
    }


def _command(arguments: list[str]) -> Callable[[], object]:
    return lambda: subprocess.run(arguments, check=True)


def _evaluated(run: Callable[[], pyvips.Image]) -> Callable[[], object]:
    return lambda: run().write_to_memory()


def _on_one_thread(image: pyvips.Image) -> pyvips.Image:
    image = image.copy()
    image.set_type(pyvips.GValue.gint_type, "concurrency", 1)
    return image


if __name__ == "__main__":
    pyvips.cache_set_max(0)
    sys.exit(main())
