"""Make the pictures of the examples: ``python -m examples.make_pictures``, from the top of the project.

Each run gives the same pictures. The photographs come with scikit-image; the rest is drawn here, except for
logo.svg, which is its own source.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyvips
from numpy.typing import NDArray
from tests.support import photos

FOLDER = Path(__file__).parent / "pictures"

_DAY_FRAMES = 24
_DAY_SIZE = (240, 160)
_FRAME_MILLISECONDS = 80
_COPYRIGHT = "NASA, public domain"

_Floats = NDArray[np.floating]


def main() -> int:
    for make in (portrait, coffee, logo, day):
        path = make()
        print(f"{path.name}: {path.stat().st_size / 1000:.1f} kB")
    return 0


def portrait() -> Path:
    """A JPEG as a phone held upright writes it: Display P3, and lying on its side with EXIF orientation 6."""
    path = FOLDER / "portrait.jpg"
    upright = photos.as_vips(photos.astronaut()[:, 56:456])
    lying = upright.icc_transform("p3", input_profile="srgb", intent="relative").rot270().copy()
    lying.set_type(pyvips.GValue.gint_type, "orientation", 6)
    lying.set_type(pyvips.GValue.gstr_type, "exif-ifd0-Copyright", f"{_COPYRIGHT} ({_COPYRIGHT}, ASCII)")
    lying.jpegsave(str(path), Q=88, keep="icc|exif")
    return path


def coffee() -> Path:
    """A HEIC photograph."""
    from PIL import Image
    from pillow_heif import register_heif_opener

    register_heif_opener()
    path = FOLDER / "coffee.heic"
    Image.fromarray(photos.coffee()).save(path, quality=60)
    return path


def logo() -> Path:
    """The logo as a PNG with transparency, twice as large as drawn."""
    path = FOLDER / "emblem.png"
    image = pyvips.Image.svgload_buffer((FOLDER / "logo.svg").read_bytes(), scale=2)
    image.pngsave(str(path), compression=9, keep="none")
    return path


def day() -> Path:
    """An animated GIF of a day: the sun rises, crosses the sky and sets behind hills."""
    path = FOLDER / "day.gif"
    frames = [photos.as_vips(_landscape(time)) for time in np.arange(_DAY_FRAMES) / _DAY_FRAMES]
    strip = pyvips.Image.arrayjoin(frames, across=1).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", frames[0].height)
    strip.set_type(pyvips.GValue.array_int_type, "delay", [_FRAME_MILLISECONDS] * _DAY_FRAMES)
    strip.set_type(pyvips.GValue.gint_type, "loop", 0)
    strip.gifsave(str(path), dither=0.6, effort=10, keep="none")
    return path


def _landscape(time: float) -> photos.Pixels:
    """Hills and sky at a time of the day: 0 is midnight, .5 is noon."""
    width, height = _DAY_SIZE
    y, x = np.mgrid[0:height, 0:width] + 0.5
    x, y = x / width, y / height
    angle = 2 * np.pi * (time - 0.25)
    sun_x, sun_y = 0.5 - 0.42 * np.cos(angle), 0.75 - 0.58 * np.sin(angle)
    daylight = _smooth(-0.35, 0.6, np.sin(angle))
    dusk = np.exp(-(np.sin(angle) ** 2) / 0.12)
    sky = _mix(_color("0b1033"), _color("3f87d9"), daylight)
    horizon = _mix(_mix(_color("1d2350"), _color("cfe6f5"), daylight), _color("f5874f"), 0.85 * dusk)
    picture = _mix(sky, horizon, _smooth(0.05, 0.8, y)[..., None])
    far = np.hypot((x - sun_x) * width / height, y - sun_y)
    glow = np.exp(-((far / 0.22) ** 2)) * (0.25 + 0.5 * dusk) * daylight
    picture = _mix(picture, _color("ffd9a0"), glow[..., None])
    picture = _mix(
        picture, _mix(_color("fff6d8"), _color("ffb066"), dusk), _smooth(0.083, 0.077, far)[..., None]
    )
    for crest, waves, shade in ((0.70, 3.1, "5a7d6a"), (0.78, 2.2, "39604a"), (0.88, 1.4, "1f3d30")):
        ridge = crest + 0.045 * np.sin(waves * 2 * np.pi * x + 9 * crest) + 0.02 * np.sin(waves * 11 * x)
        hill = _mix(_color("0a1120"), _color(shade), 0.15 + 0.85 * daylight)
        picture = _mix(picture, hill, _smooth(-0.004, 0.004, y - ridge)[..., None])
    pixels: photos.Pixels = np.rint(picture * 255).astype(np.uint8)
    return pixels


def _mix(a: _Floats, b: _Floats, share: _Floats | float) -> _Floats:
    return a + (b - a) * share


def _smooth(start: float, end: float, x: _Floats) -> _Floats:
    t: _Floats = np.clip((x - start) / (end - start), 0, 1)
    return t * t * (3 - 2 * t)


def _color(code: str) -> _Floats:
    return np.frombuffer(bytes.fromhex(code), np.uint8) / 255.0


if __name__ == "__main__":
    sys.exit(main())
