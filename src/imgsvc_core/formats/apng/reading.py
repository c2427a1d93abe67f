"""Animated PNG, frame by frame through libvips' PNG codec, with 16 bits if the file has them."""

from __future__ import annotations

import struct
from typing import Any

import pyvips

from imgsvc_core._runtime.deadline import check_time
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.apng import Apng
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.png.header import ApngFrame, make_chunk
from imgsvc_core.formats.png.metadata import read_blocks, read_profile
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.vips import attach, from_array, to_array, with_timing

# Chunks before the pixels that say how they are to be understood; every frame is decoded with them.
_SHARED = (b"PLTE", b"tRNS", b"sRGB", b"gAMA", b"cHRM", b"sBIT", b"cICP")


def read(picture: Apng, settings: LoadSettings) -> pyvips.Image:
    """Return all frames as a strip, or the first frame as it is shown.

    A default image outside the animation is not among them.
    """
    reader, head, animation = picture.header_reader, picture.header.head, picture.header.animation
    assert animation is not None
    shared = [
        make_chunk(chunk.kind, png.read_content(reader, chunk))
        for chunk in picture.header.chunks
        if chunk.kind in _SHARED
    ]
    frames = animation.frames if settings.all_frames else animation.frames[:1]
    pictures = [_decode_frame(reader, head, frame, shared) for frame in frames]
    strip = from_array(_compose(pictures, frames, head.width, head.height))
    blocks = read_blocks(reader) if settings.metadata else {}
    strip = attach(strip, {**blocks, PROFILE: read_profile(reader, picture.header.chunks)})
    if not settings.all_frames:
        return strip
    return with_timing(strip, head.height, animation.delays, animation.plays)


def _decode_frame(
    reader: HeaderReader, head: png.Head, frame: ApngFrame, shared: list[bytes]
) -> pyvips.Image:
    """Decode a frame as a PNG of its own."""
    header = struct.pack(">IIBBBBB", frame.width, frame.height, head.depth, head.color, 0, 0, head.interlaced)
    pixels = png.frame_data(reader, frame)
    chunks = (make_chunk(b"IHDR", header), *shared, make_chunk(b"IDAT", pixels), make_chunk(b"IEND"))
    return pyvips.Image.pngload_buffer(b"".join((png.SIGNATURE, *chunks)), fail_on="error")


def _compose(pictures: list[pyvips.Image], frames: tuple[ApngFrame, ...], width: int, height: int) -> Any:
    """Return the canvas after each frame, below each other: (frames * height, width, bands)."""
    import numpy as np

    if not _opaque(pictures, frames, width, height):
        pictures = [_rgba(picture) for picture in pictures]
    arrays = list(map(_in_time, pictures))
    canvas = np.zeros((height, width, arrays[0].shape[2]), arrays[0].dtype)
    shown = np.empty((len(frames), *canvas.shape), canvas.dtype)
    for index, (pixels, frame) in enumerate(zip(arrays, frames, strict=True)):
        check_time()
        region = canvas[frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
        before = region.copy() if frame.disposal == png.RESTORE else None
        region[...] = _over(pixels, region) if frame.blend == png.OVER and pixels.shape[2] == 4 else pixels
        shown[index] = canvas
        if before is not None:
            region[...] = before
        elif frame.disposal == png.CLEAR:
            region[...] = 0
    return shown.reshape(len(frames) * height, width, canvas.shape[2])


def _in_time(picture: pyvips.Image) -> Any:
    """Return the pixels of a frame, unless the time is up."""
    check_time()
    return to_array(picture)


def _opaque(pictures: list[pyvips.Image], frames: tuple[ApngFrame, ...], width: int, height: int) -> bool:
    """Return True if no pixel of the canvas is ever transparent, so that the animation needs no alpha."""
    first, *later = frames
    uncovered = (first.width, first.height) != (width, height)
    cleared = [frame.disposal for frame in frames[:-1]].count(png.CLEAR) or (
        later and first.disposal == png.RESTORE
    )
    return not (uncovered or cleared or any(picture.hasalpha() for picture in pictures))


def _over(source: Any, below: Any) -> Any:
    """Blend source over destination with straight alpha; pixels of alpha 0 or full are exact."""
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
