"""The run-length encodings of BMP: RLE4, RLE8 and OS/2's RLE24."""

from __future__ import annotations

from typing import Any

from imgsvc_core.errors import CorruptImage

_END_OF_ROW, _END, _JUMP = 0, 1, 2


def expand_rle(data: bytes, width: int, height: int, bits: int) -> Any:
    """Return rows in stored order: palette indices, or RGB for 24 bits. Skipped pixels are 0.

    Runs that leave the image are cut off, as in other readers. Data that end early are `CorruptImage`.
    """
    import numpy as np

    unit = 3 if bits == 24 else 1
    canvas = bytearray(width * height * unit)
    x = y = position = 0

    def take(length: int) -> bytes:
        nonlocal position
        taken = data[position : position + length]
        if len(taken) < length:
            raise CorruptImage(f"The BMP image is truncated: its runs end in row {y} of {height}.")
        position += length
        return taken

    while y < height:
        count, value = take(2)
        if count:
            run = _pixels(bytes((value,)) + take(unit - 1), bits) * count
        elif value == _END_OF_ROW:
            x, y = 0, y + 1
            continue
        elif value == _END:
            break
        elif value == _JUMP:
            right, up = take(2)
            x, y = x + right, y + up
            continue
        else:
            count, length = value, (value * bits + 7) // 8
            run = _pixels(take(length), bits)
            position += length % 2
        visible = run[: max(0, min(count, width - x)) * unit]
        start = (y * width + x) * unit
        canvas[start : start + len(visible)] = visible
        x += count
    pixels = np.frombuffer(canvas, np.uint8)
    return pixels.reshape(height, width) if unit == 1 else pixels.reshape(height, width, 3)[:, :, ::-1]


def _pixels(data: bytes, bits: int) -> bytes:
    """Return one byte for each pixel of 4 or 8 bits, and three for one of 24."""
    return data if bits != 4 else bytes(half for byte in data for half in (byte >> 4, byte & 15))
