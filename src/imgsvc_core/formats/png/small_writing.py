"""Small PNGs, encoded in the thread of the caller.

libvips passes each picture through three threads, which takes four times as long as encoding 4096 pixels.
Its threads still compute the pixels: in the thread of the caller, libvips would compute pixels that several
operations share once for each operation.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from imgsvc_core.formats import palette
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.png.header import SIGNATURE, make_chunk, make_resolution

MOST_PIXELS = 64 * 64
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of bands


def encode(pixels: Any, resolution: tuple[float, float], level: int) -> tuple[bytes, SavedFacts]:
    """Encode an array of (height, width, bands) of 8 bits, compressed at a level of zlib. Return also facts.

    The resolution is in pixels per millimeter, across and down.
    """
    height, width, bands = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[bands], 0, 0, 0)
    lines = pixels.reshape(height, width * bands)
    plain = [make_chunk(b"IHDR", header)]
    facts: SavedFacts = {"colorspace": "gray" if bands < 3 else "srgb"}
    encoded = [
        (plain, _deflated(_filtered(lines, bands), level, zlib.Z_FILTERED), facts),
        (plain, _deflated(_unfiltered(lines), level, zlib.Z_DEFAULT_STRATEGY), facts),
    ]
    indexed = palette.index_exactly(pixels, palette.MOST_COLORS)
    if indexed is not None:
        numbers = _deflated(
            _unfiltered(_packed(indexed.numbers, indexed.bits)), level, zlib.Z_DEFAULT_STRATEGY
        )
        header = struct.pack(">IIBBBBB", width, height, indexed.bits, 0, 0, 0, 0)
        encoded.append((indexed.head(header), numbers, indexed.facts()))
    head, data, facts = min(encoded, key=lambda found: sum(map(len, (*found[0], found[1]))))
    file = b"".join(
        (
            SIGNATURE,
            head[0],
            make_resolution(*resolution),
            *head[1:],
            make_chunk(b"IDAT", data),
            make_chunk(b"IEND"),
        )
    )
    return file, facts


def _packed(numbers: Any, bits: int) -> Any:
    """Return lines of numbers of so many bits each, the first in the highest ones."""
    import numpy as np

    if bits == 8:
        return numbers
    single = (numbers[..., None] >> np.arange(bits, dtype=np.uint8)[::-1]) & 1
    return np.packbits(single.reshape(len(numbers), -1), axis=1)


def _deflated(lines: bytes, level: int, strategy: int) -> bytes:
    """Compress, with a compressor whose memory the next one uses again: new pages take most of the time."""
    compressor = zlib.compressobj(level, strategy=strategy)
    return compressor.compress(lines) + compressor.flush()


def _unfiltered(lines: Any) -> bytes:
    import numpy as np

    return np.concatenate([np.zeros((len(lines), 1), np.uint8), lines], axis=1).tobytes()


def _filtered(lines: Any, bands: int) -> bytes:
    """Return each line with the filter that leaves the smallest differences (PNG, 12.7)."""
    import numpy as np

    height, width = lines.shape
    framed = np.zeros((height + 1, width + bands), np.uint8)
    framed[1:, bands:] = lines
    left, above, corner = framed[1:, :-bands], framed[:-1, bands:], framed[:-1, :-bands]
    deep = corner.astype(np.int16)
    to_left, to_above = above - deep, left - deep
    to_corner = np.abs(to_left + to_above)
    np.abs(to_left, out=to_left)
    np.abs(to_above, out=to_above)
    paeth = np.where(to_above <= to_corner, above, corner)
    paeth = np.where((to_left <= to_above) & (to_left <= to_corner), left, paeth)
    mean = (left & above) + ((left ^ above) >> 1)
    differences = np.empty((5, height, width), np.uint8)  # few new pages, which take most of the time
    differences[0] = lines
    for number, guess in enumerate((left, above, mean, paeth), start=1):
        np.subtract(lines, guess, out=differences[number])
    absolute = np.abs(differences.view(np.int8)).view(np.uint8)
    best = absolute.sum(axis=2, dtype=np.uint32).argmin(axis=0)
    chosen = differences[best, np.arange(height)]
    return np.concatenate([best[:, None].astype(np.uint8), chosen], axis=1).tobytes()
