"""Files of the lossless formats put together byte by byte, and short ways to other encoders."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np
import pyvips
from PIL import Image

from tests.support.photos import Pixels


def pillow(pixels: Pixels | Image.Image, format: str, **options: Any) -> bytes:
    """The picture as Pillow encodes it."""
    picture = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    file = io.BytesIO()
    picture.save(file, format, **options)
    return file.getvalue()


def vips(pixels: Pixels) -> pyvips.Image:
    """The pixels as libvips' picture."""
    image = pyvips.Image.new_from_array(np.ascontiguousarray(pixels))
    deep_ = pixels.dtype == np.uint16
    if image.bands < 3:
        return image.copy(interpretation="grey16" if deep_ else "b-w")
    return image.copy(interpretation="rgb16" if deep_ else "srgb")


def png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_scanlines(pixels: Pixels) -> bytes:
    """The compressed data of a picture without filters."""
    rows = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">"))).reshape(len(pixels), -1)
    raw = rows.view(np.uint8).reshape(len(pixels), -1)
    return zlib.compress(np.hstack((np.zeros((len(raw), 1), np.uint8), raw)).tobytes())


def png_header(pixels: Pixels) -> bytes:
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[1 if pixels.ndim == 2 else pixels.shape[2]]
    return struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], pixels.itemsize * 8, kind, 0, 0, 0)


def png_by_hand(pixels: Pixels) -> bytes:
    return png_with(pixels)


def png_with(pixels: Pixels, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG with more chunks between the header and the data."""
    parts = (
        (b"IHDR", png_header(pixels)),
        *chunks,
        (b"IDAT", png_scanlines(pixels)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)


@attrs.frozen(kw_only=True)
class ApngFrame:
    """A frame as the file holds it."""

    pixels: Pixels
    left: int = 0
    top: int = 0
    delay: tuple[int, int] = (1, 10)
    disposal: int = 0
    blend: int = 0


def apng_by_hand(parts: Sequence[ApngFrame], *, plays: int = 0, default: Pixels | None = None) -> bytes:
    """An animated PNG; with ``default`` there is a picture outside the animation."""
    first = parts[0].pixels if default is None else default
    chunks = [(b"IHDR", png_header(first)), (b"acTL", struct.pack(">II", len(parts), plays))]
    if default is not None:
        chunks.append((b"IDAT", png_scanlines(default)))
    sequence = 0
    for index, part in enumerate(parts):
        height, width = part.pixels.shape[:2]
        control = (sequence, width, height, part.left, part.top, *part.delay, part.disposal, part.blend)
        chunks.append((b"fcTL", struct.pack(">IIIIIHHBB", *control)))
        sequence += 1
        if index == 0 and default is None:
            chunks.append((b"IDAT", png_scanlines(part.pixels)))
            continue
        chunks.append((b"fdAT", struct.pack(">I", sequence) + png_scanlines(part.pixels)))
        sequence += 1
    chunks.append((b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*chunk) for chunk in chunks)


def gif_codes(pixels: Iterable[int], bits: int) -> bytes:
    """Pixels of a GIF frame of some bits. A clear code before every second one keeps the codes short."""
    clear, end = 1 << bits, (1 << bits) + 1
    codes = [
        code
        for index, pixel in enumerate(pixels)
        for code in ((clear, pixel) if index % 2 == 0 else (pixel,))
    ]
    text = "".join(f"{code:0{bits + 1}b}"[::-1] for code in (*codes, end))
    packed = bytes(int(text[start : start + 8][::-1], 2) for start in range(0, len(text), 8))
    blocks = (packed[start : start + 255] for start in range(0, len(packed), 255))
    return bytes((bits,)) + b"".join(bytes((len(block),)) + block for block in blocks) + b"\0"


def bmp_by_hand(
    rows: bytes, width: int, height: int, bits: int, compression: int = 0, *, extra: bytes = b"",
    palette: bytes = b"", header_size: int = 40,
) -> bytes:  # fmt: skip
    """A BMP file of a header, what follows it (masks), a palette and rows, bottom row first."""
    used = len(palette) // 4
    fields = struct.pack(
        "<IiiHHIIiiII", header_size, width, height, 1, bits, compression, len(rows), 0, 0, used, 0
    )
    header = fields + extra.ljust(header_size - 40, b"\0") + palette
    start = 14 + len(header)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + header + rows


def psd_by_hand(
    planes: Pixels, mode: int, *, transparent_layers: bool = False, resources: bytes = b"", rle: bool = False,
    palette: bytes = b"", block: bytes = b"", big: bool = False,
) -> bytes:  # fmt: skip
    """A PSD of (channels, height, width) planes and no layers; an empty block of a key may follow them.

    A ``big`` one is a PSB.
    """
    length, count, version = (">Q", ">I", 2) if big else (">I", ">H", 1)
    channels, height, width = planes.shape
    stored = planes.astype(planes.dtype.newbyteorder(">"))
    layers = struct.pack(length + "h", 2, -1 if transparent_layers else 0)
    layers += struct.pack(">I4s4sI", 0, b"8BIM", block, 0) if block else b"\0\0"
    body = stored.tobytes()
    if rle:
        rows = [_pack_bits(row.tobytes()) for plane in stored for row in plane]
        body = b"".join(struct.pack(count, len(row)) for row in rows) + b"".join(rows)
    return b"".join(
        (
            struct.pack(">4sH6xHIIHH", b"8BPS", version, channels, height, width, planes.itemsize * 8, mode),
            struct.pack(">I", len(palette)), palette,
            struct.pack(">I", len(resources)), resources,
            struct.pack(length, len(layers)), layers,
            struct.pack(">H", 1 if rle else 0), body,
        )
    )  # fmt: skip


def psd_resource(kind: int, body: bytes) -> bytes:
    return struct.pack(">4sHHI", b"8BIM", kind, 0, len(body)) + body + b"\0" * (len(body) % 2)


def _pack_bits(row: bytes) -> bytes:
    parts = (row[start : start + 128] for start in range(0, len(row), 128))
    return b"".join(bytes((len(part) - 1,)) + part for part in parts)
