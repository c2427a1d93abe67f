"""The run-length encodings of BMP: RLE4, RLE8 and OS/2's RLE24."""

from __future__ import annotations

from typing import Any

from imgsvc_core.errors import CorruptImage


def expand_rle(data: bytes, width: int, height: int, bits: int) -> Any:
    """Return rows in stored order: palette indices, or RGB for 24 bits. Skipped pixels are 0.

    Runs that leave the image are cut off, as in other readers. Data that end early are `CorruptImage`.
    """
    import numpy as np

    unit = 3 if bits == 24 else 1
    canvas = bytearray(width * height * unit)
    x = y = position = 0
    while y < height:
        if position + 2 > len(data):
            raise CorruptImage(f"The BMP image is truncated: its runs end in row {y} of {height}.")
        count, value = data[position], data[position + 1]
        if count:
            run = _repeated(data, position + 1, count, bits)
            position += 1 + unit
            _put(canvas, run, x, y, width, unit)
            x += count
            continue
        position += 2
        match value:
            case 0:
                x, y = 0, y + 1
            case 1:
                break
            case 2:
                if position + 2 > len(data):
                    raise CorruptImage("The BMP image is truncated inside a jump.")
                x, y = x + data[position], y + data[position + 1]
                position += 2
            case _:
                length = (value * bits + 7) // 8
                literal = data[position : position + length]
                if len(literal) < length:
                    raise CorruptImage("The BMP image is truncated inside a literal run.")
                _put(canvas, _nibbles(literal, value) if bits == 4 else literal, x, y, width, unit)
                x += value
                position += length + length % 2
    pixels = np.frombuffer(canvas, np.uint8)
    return pixels.reshape(height, width) if unit == 1 else pixels.reshape(height, width, 3)[:, :, ::-1]


def _repeated(data: bytes, position: int, count: int, bits: int) -> bytes:
    if bits == 24:
        return data[position : position + 3] * count
    if bits == 8:
        return data[position : position + 1] * count
    high, low = data[position] >> 4, data[position] & 15
    return bytes((high, low)) * (count // 2) + bytes((high,)) * (count % 2)


def _nibbles(data: bytes, count: int) -> bytes:
    return bytes(nibble for byte in data for nibble in (byte >> 4, byte & 15))[:count]


def _put(canvas: bytearray, run: bytes, x: int, y: int, width: int, unit: int) -> None:
    visible = run[: max(width - x, 0) * unit]
    start = (y * width + x) * unit
    canvas[start : start + len(visible)] = visible
