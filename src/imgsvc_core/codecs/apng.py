"""Animated PNG, frame by frame through libvips' PNG codec, with 16 bits where the file has them.

Follows the chapters on animation of the PNG specification, third edition (acTL, fcTL, fdAT).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import attrs
import pyvips

from imgsvc_core.codecs.changes import changed_area, timing
from imgsvc_core.codecs.readers.vips import attach, from_array, to_array, with_timing
from imgsvc_core.errors import CorruptImage
from imgsvc_core.vipsimage import frame_count, split_frames

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEEP, _CLEAR, _RESTORE = 0, 1, 2
_OVER = 1
# Chunks before the pixels that say how they are to be understood; every frame is decoded with them.
_SHARED = (b"PLTE", b"tRNS", b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"sBIT", b"cICP", b"eXIf", b"iTXt", b"zTXt")


@attrs.define
class _Frame:
    """One fcTL and the compressed data that belong to it."""

    width: int
    height: int
    left: int
    top: int
    delay: int
    disposal: int
    blend: int
    data: list[bytes] = attrs.field(factory=list)


@attrs.define
class _Animation:
    header: bytes = b""
    shared: list[bytes] = attrs.field(factory=list)
    frames: list[_Frame] = attrs.field(factory=list)
    plays: int = 0

    @property
    def size(self) -> tuple[int, int]:
        width, height = struct.unpack_from(">II", self.header)
        return width, height


def decode(data: Any, *, first_only: bool = False) -> pyvips.Image:
    """All frames as they are shown, in a tall strip with ``delay`` and ``loop``; or the first one alone.

    A default image outside the animation is not among them. Raises `CorruptImage`.
    """
    animation = _parse(memoryview(data))
    width, height = animation.size
    frames = animation.frames[:1] if first_only else animation.frames
    pictures = [_decode_frame(animation, frame) for frame in frames]
    strip = from_array(_compose(pictures, frames, width, height))
    blobs = ("icc-profile-data", "exif-data", "xmp-data")
    strip = attach(strip, {name: pictures[0].get(name) for name in blobs if pictures[0].get_typeof(name)})
    if first_only:
        return strip
    return with_timing(strip, height, tuple(frame.delay for frame in frames), animation.plays)


def encode(image: pyvips.Image, *, keep: str = "icc", **options: object) -> bytes:
    """All frames of a strip, each as the rectangle that changed; ``options`` go to libvips' PNG writer."""
    frames = split_frames(image)
    delays, plays = timing(image, frame_count(image))
    written = [_SIGNATURE]
    sequence = 0
    for index, frame in enumerate(frames):
        area = (0, 0, frame.width, frame.height) if index == 0 else changed_area(frames[index - 1], frame)
        png = frame.crop(*area).pngsave_buffer(keep=keep if index == 0 else "none", **options)
        chunks = list(_chunks(memoryview(png)))
        pixels = b"".join(body for kind, body in chunks if kind == b"IDAT")
        if index == 0:
            head = [_chunk(kind, body) for kind, body in chunks if kind not in (b"IDAT", b"IEND")]
            head.insert(1, _chunk(b"acTL", struct.pack(">II", len(frames), plays)))
            written += head
        left, top, width, height = area
        control = (sequence, width, height, left, top, *_fraction(delays[index]), _KEEP, 0)
        written.append(_chunk(b"fcTL", struct.pack(">IIIIIHHBB", *control)))
        sequence += 1
        if index == 0:
            written.append(_chunk(b"IDAT", pixels))
        else:
            written.append(_chunk(b"fdAT", struct.pack(">I", sequence), pixels))
            sequence += 1
    written.append(_chunk(b"IEND", b""))
    return b"".join(written)


def _parse(data: memoryview) -> _Animation:
    animation = _Animation()
    expected = declared = sequence = 0
    pixels_begun = False
    for kind, body in _chunks(data):
        if kind == b"IHDR" and not animation.header:
            animation.header = bytes(body)
        elif kind == b"acTL" and not pixels_begun and not declared:
            declared, animation.plays = struct.unpack(">II", body)
        elif kind in (b"fcTL", b"fdAT"):
            (sequence,) = struct.unpack_from(">I", body)
            if sequence != expected:
                raise CorruptImage(f"The animated PNG image has chunk {sequence} where {expected} was due.")
            expected += 1
            if kind == b"fcTL":
                animation.frames.append(_frame(body, animation.size))
            elif not animation.frames:
                raise CorruptImage("The animated PNG image has frame data before the first frame.")
            else:
                animation.frames[-1].data.append(bytes(body[4:]))
        elif kind == b"IDAT":
            pixels_begun = True
            if animation.frames:
                animation.frames[-1].data.append(bytes(body))
        elif kind in _SHARED and not pixels_begun:
            animation.shared.append(_chunk(kind, body))
    complete = [frame for frame in animation.frames if frame.data]
    if not declared or len(complete) != declared or len(complete) != len(animation.frames):
        raise CorruptImage(
            f"The animated PNG image is truncated: {len(complete)} of {declared} frames are there."
        )
    return animation


def _chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Type and content of each chunk up to IEND; `CorruptImage` for a missing part or a wrong checksum."""
    position = len(_SIGNATURE)
    while True:
        if position + 12 > len(data):
            raise CorruptImage("The PNG image is truncated.")
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + 8 + length
        if end + 4 > len(data):
            raise CorruptImage(
                f"The PNG image is truncated inside its {kind.decode('ascii', 'replace')} chunk."
            )
        if zlib.crc32(data[position + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise CorruptImage(f"The PNG image is damaged in its {kind.decode('ascii', 'replace')} chunk.")
        yield kind, data[position + 8 : end]
        if kind == b"IEND":
            return
        position = end + 4


def _chunk(kind: bytes, *parts: bytes | memoryview) -> bytes:
    body = b"".join((kind, *parts))
    return b"".join((struct.pack(">I", len(body) - 4), body, struct.pack(">I", zlib.crc32(body))))


def _frame(body: memoryview, canvas: tuple[int, int]) -> _Frame:
    _, width, height, left, top, numerator, denominator, disposal, blend = struct.unpack(">IIIIIHHBB", body)
    if not (0 < width <= canvas[0] - left and 0 < height <= canvas[1] - top):
        raise CorruptImage("The animated PNG image has a frame outside its canvas.")
    delay = round(1000 * numerator / (denominator or 100))
    return _Frame(width, height, left, top, delay, disposal, blend)


def _decode_frame(animation: _Animation, frame: _Frame) -> pyvips.Image:
    header = struct.pack(">II", frame.width, frame.height) + animation.header[8:]
    png = b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            *animation.shared,
            _chunk(b"IDAT", *frame.data),
            _chunk(b"IEND"),
        )
    )
    return pyvips.Image.pngload_buffer(png, fail_on="error")


def _compose(pictures: list[pyvips.Image], frames: list[_Frame], width: int, height: int) -> Any:
    """The canvas after each frame, below each other: (frames * height, width, bands)."""
    import numpy as np

    if not _opaque(pictures, frames, width, height):
        pictures = [_rgba(picture) for picture in pictures]
    arrays = [to_array(picture) for picture in pictures]
    canvas = np.zeros((height, width, arrays[0].shape[2]), arrays[0].dtype)
    shown = np.empty((len(frames), *canvas.shape), canvas.dtype)
    for index, (pixels, frame) in enumerate(zip(arrays, frames, strict=True)):
        region = canvas[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
        before = region.copy() if frame.disposal == _RESTORE and index else None
        region[...] = _over(pixels, region) if frame.blend == _OVER and pixels.shape[2] == 4 else pixels
        shown[index] = canvas
        if before is not None:
            region[...] = before
        elif frame.disposal in (_CLEAR, _RESTORE):
            region[...] = 0
    return shown.reshape(len(frames) * height, width, canvas.shape[2])


def _opaque(pictures: list[pyvips.Image], frames: list[_Frame], width: int, height: int) -> bool:
    """Whether no pixel of the canvas is ever transparent, so that the animation needs no alpha."""
    first, *later = frames
    uncovered = (first.width, first.height) != (width, height)
    cleared = [frame.disposal for frame in frames[:-1]].count(_CLEAR) or (
        later and first.disposal == _RESTORE
    )
    return not (uncovered or cleared or any(picture.hasalpha() for picture in pictures))


def _over(source: Any, below: Any) -> Any:
    """Source over destination with straight alpha; pixels of alpha 0 or full are exact."""
    import numpy as np

    white = np.iinfo(source.dtype).max
    top = source[..., 3:].astype(np.float64) / white
    bottom = below[..., 3:].astype(np.float64) / white * (1 - top)
    alpha = top + bottom
    color = (source[..., :3] * top + below[..., :3] * bottom) / np.where(alpha, alpha, 1)
    blended = np.concatenate((color, alpha * white), axis=-1)
    return np.rint(blended).astype(source.dtype)


def _rgba(picture: pyvips.Image) -> pyvips.Image:
    if picture.bands < 3:
        picture = picture.colourspace("rgb16" if picture.format == "ushort" else "srgb")
    return picture if picture.bands == 4 else picture.addalpha()


def _fraction(milliseconds: int) -> tuple[int, int]:
    """A delay as numerator and denominator of 16 bits: exact up to 65 s, then in tenths or whole seconds."""
    for denominator in (1000, 100, 10):
        numerator = round(milliseconds * denominator / 1000)
        if numerator <= 65_535:
            return numerator, denominator
    return min(round(milliseconds / 1000), 65_535), 1
