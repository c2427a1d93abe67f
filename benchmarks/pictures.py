"""Photographic files to measure with, made once and kept in a folder of temporary files.

``python -m benchmarks.pictures NAME...`` makes them ahead, in a process of its own, so that the large arrays
do not count as memory of whoever measures.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(tempfile.gettempdir()) / "imgsvc-benchmark-pictures"

_SIZES = {
    "6mp": (2725, 2225),
    "vga": (640, 480),
    "2mp": (1632, 1224),
    "4mp": (2560, 1600),
    "12mp": (4000, 3000),
    "25mp": (5000, 5000),
    "100mp": (11547, 8660),
}
_FRAMES = {"60frames": (60, 480, 360), "20frames": (20, 480, 392)}
_FADED = {"alpha": (2048, 1536), "mark": (200, 150)}
NAMES = (
    *(f"{size}.jpg" for size in _SIZES),
    "100mp.png",
    "25mp.tif",
    "small.png",
    *(f"{name}.png" for name in _FADED),
    *(f"{name}.gif" for name in _FRAMES),
)


def picture(name: str) -> Path:
    """Path of one of ``NAMES``: ``6mp.jpg`` is 2725 x 2225 at quality 90 with 4:2:0, as cameras write."""
    path = FOLDER / name
    if not path.exists():
        subprocess.run([sys.executable, "-m", "benchmarks.pictures", name], check=True)
    return path


def make(name: str) -> None:
    """Draw the picture and write its file at once, so that no half of one is ever found."""
    import pyvips
    from tests.support import photos

    FOLDER.mkdir(parents=True, exist_ok=True)
    size, kind = name.split(".")
    if kind == "gif":
        count, width, height = _FRAMES[size]
        frames = [photos.as_vips(frame) for frame in photos.moving_frames(count, width, height)]
        strip = pyvips.Image.arrayjoin(frames, across=1).copy()
        strip.set_type(pyvips.GValue.gint_type, "page-height", height)
        strip.set_type(pyvips.GValue.array_int_type, "delay", [40] * count)
        data = strip.gifsave_buffer()
    elif size in _FADED:
        data = _faded(photos.as_vips(photos.mosaic(*_FADED[size]))).pngsave_buffer()
    elif size == "small":
        data = photos.as_vips(photos.coffee()).thumbnail_image(64, height=64, size="force").pngsave_buffer()
    else:
        image = photos.as_vips(photos.mosaic(*_SIZES[size]))
        data = {
            "png": lambda: image.pngsave_buffer(compression=3),
            "tif": lambda: image.tiffsave_buffer(tile=True),
            "jpg": lambda: _as_camera_jpeg(image),
        }[kind]()
    unfinished = FOLDER / f"{name}.unfinished"
    unfinished.write_bytes(data)
    unfinished.rename(FOLDER / name)


def on_one_thread(image: Any) -> Any:
    """Return an image of libvips that is computed in one thread."""
    import pyvips

    image = image.copy()
    image.set_type(pyvips.GValue.gint_type, "concurrency", 1)
    return image


def _faded(image: Any) -> Any:
    """Add alpha: an opaque ellipse that fades out towards the corners, which are transparent."""
    import pyvips

    place = (pyvips.Image.xyz(image.width, image.height) / [image.width, image.height]) * 2 - 1
    distance = (place[0] ** 2 + place[1] ** 2) ** 0.5
    alpha = ((1.2 - distance) * 640).cast("uchar")
    return image.bandjoin(alpha).copy(interpretation="srgb")


def _as_camera_jpeg(image: object) -> bytes:
    import pyvips

    assert isinstance(image, pyvips.Image)
    data: bytes = image.jpegsave_buffer(Q=90, subsample_mode="on", keep="none")
    return data


if __name__ == "__main__":
    for wanted in sys.argv[1:] or NAMES:
        make(wanted)
