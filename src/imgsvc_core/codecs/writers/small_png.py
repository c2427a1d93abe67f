"""Small PNGs, encoded in the thread of the caller.

libvips hands each picture through three threads, which takes four times as long as to encode 4096 pixels. Its
threads still compute the pixels: in any other thread it computes what several operations share once for each.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pyvips

from imgsvc_core.codecs.headers.png import SIGNATURE, make_chunk
from imgsvc_core.vipsimage import samples_of, size_of

_MOST_PIXELS = 64 * 64
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of bands
_MM_PER_METER = 1000
_HIGHEST = 2**31 - 1


def suits(image: pyvips.Image) -> bool:
    """Return True for small pictures of 8 bits."""
    width, height = size_of(image)
    return width * height <= _MOST_PIXELS and samples_of(image) == "uchar"


def encode(image: pyvips.Image, level: int) -> bytes:
    """Encode a picture without metadata, compressed at a level of zlib."""
    (width, height), bands = size_of(image), image.bands
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[bands], 0, 0, 0)
    per_meter = (_per_meter(image.get(name)) for name in ("xres", "yres"))
    pixels = bytes(image.write_to_memory())
    photograph = zlib.compressobj(level, strategy=zlib.Z_FILTERED)
    drawing = zlib.compressobj(level)
    smallest = min(
        photograph.compress(_filtered(pixels, height, bands)) + photograph.flush(),
        drawing.compress(_unfiltered(pixels, width * bands)) + drawing.flush(),
        key=len,
    )
    return b"".join(
        (
            SIGNATURE,
            make_chunk(b"IHDR", header),
            make_chunk(b"pHYs", struct.pack(">IIB", *per_meter, 1)),
            make_chunk(b"IDAT", smallest),
            make_chunk(b"IEND"),
        )
    )


def _per_meter(per_millimeter: float) -> int:
    """Return a resolution as a PNG can state it. Files hold any number."""
    return round(min(per_millimeter * _MM_PER_METER, _HIGHEST)) if per_millimeter > 0 else 0


def _unfiltered(pixels: bytes, line: int) -> bytes:
    return b"".join(b"\0" + pixels[start : start + line] for start in range(0, len(pixels), line))


def _filtered(pixels: bytes, height: int, bands: int) -> bytes:
    """Return each line with the filter that leaves the smallest differences (PNG, 12.7)."""
    import numpy as np

    def absolute(differences: Any) -> Any:
        return np.abs(differences.view(np.int8).astype(np.int16))

    lines = np.frombuffer(pixels, np.uint8).reshape(height, -1)
    framed = np.zeros((height + 1, lines.shape[1] + bands), np.int16)
    framed[1:, bands:] = lines
    left, above, corner = framed[1:, :-bands], framed[:-1, bands:], framed[:-1, :-bands]
    to_left, to_above = np.abs(above - corner), np.abs(left - corner)
    to_corner = np.abs(left + above - 2 * corner)
    paeth = np.where(to_above <= to_corner, above, corner)
    paeth = np.where((to_left <= to_above) & (to_left <= to_corner), left, paeth)
    guesses = np.stack([np.zeros_like(left), left, above, (left + above) >> 1, paeth])
    differences = lines - guesses.astype(np.uint8)
    best = absolute(differences).sum(axis=2).argmin(axis=0)
    chosen = differences[best, np.arange(height)]
    return np.concatenate([best[:, None].astype(np.uint8), chosen], axis=1).tobytes()
