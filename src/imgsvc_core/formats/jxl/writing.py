"""JPEG XL, by imagecodecs, which always writes sRGB or linear light and ten frames a second.

What else the file has to tell is put into its headers here.
"""

from __future__ import annotations

from typing import Any

import pyvips

from imgsvc_core.formats.boundary import encoder
from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.changes import timing
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.jxl.bits import BitReader, BitWriter, Codestream
from imgsvc_core.formats.jxl.codestream import PLAYS, RATE, RATE_DIVISOR, add_srgb
from imgsvc_core.formats.jxl.codestream import read_header as read_codestream
from imgsvc_core.formats.jxl.frames import DURATION, read_frames
from imgsvc_core.formats.jxl.header import read_header
from imgsvc_core.formats.jxl.rewriting import boxes_of
from imgsvc_core.formats.metadata import EXIF, XMP, Blocks, blob
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort
from imgsvc_core.formats.vips import to_array

START = make_box(b"JXL ", b"\r\n\x87\n") + make_box(b"ftyp", b"jxl \0\0\0\0jxl ")
_LEVEL_10 = make_box(b"jxll", b"\x0a")
_MILLISECONDS = 1000


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write 8 or 16 bits, and all frames of an animation."""
    pixels, deep, height = to_array(image), image.format == "ushort", image.get_page_height()
    frames = pixels.shape[0] // height
    stored = pixels if settings.lossless or not deep else _linear(pixels)
    codestream = _encode(stored.reshape(frames, height, *pixels.shape[1:]), settings)
    delays, plays = timing(image, frames)
    delays = [max(1, delay) for delay in delays]  # frames without a time are not shown
    if deep or frames > 1:
        codestream = _with_headers(codestream, deep=deep, delays=delays if frames > 1 else [], plays=plays)
    boxes = boxes_of(Blocks(blob(image, EXIF), blob(image, XMP)))
    if deep or boxes:
        level = [_LEVEL_10] if deep else []
        codestream = b"".join((START, *level, *boxes, make_box(b"jxlc", codestream)))
    sink.write(codestream)
    animated = frames > 1
    return {
        "delays": tuple(delays) if animated else (),
        "plays": plays if animated else None,
        "profile": False,
    }


def _encode(pixels: Any, settings: SaveSettings) -> bytes:
    """Return a bare codestream of an array of (frames, height, width, bands)."""
    import imagecodecs

    effort = codec_effort("jxl", settings.effort)
    assert isinstance(effort, int)
    level = 101 if settings.lossless else settings.quality
    bands = pixels.shape[3]
    with encoder("jxl"):
        encoded = imagecodecs.jpegxl_encode(
            pixels[..., 0] if bands == 1 else pixels,
            level=level,
            effort=effort,
            photometric={1: "gray", 2: None}.get(bands, "rgb"),  # "gray" would not be read as having alpha
            numthreads=1,
        )
    source = HeaderReader(ByteSource(bytes(encoded)), "JPEG XL")
    _, header = read_header(source)
    return b"".join(source.read(start, length) for start, length in header.codestream.parts)


def _linear(pixels: Any) -> Any:
    """Return 16 bits of sRGB as linear light, which the encoder takes them for; alpha stays."""
    import numpy as np

    curve = np.arange(65536) / 65535
    light = np.where(curve <= 0.04045, curve / 12.92, ((curve + 0.055) / 1.055) ** 2.4)
    linear = np.take(np.rint(light * 65535).astype(np.uint16), pixels)
    if pixels.shape[2] in (2, 4):
        linear[..., -1] = pixels[..., -1]
    return linear


def _with_headers(codestream: bytes, *, deep: bool, delays: list[int], plays: int) -> bytes:
    """Return a codestream that says that 16 bits are sRGB, and what the times of an animation are."""
    source = Codestream(HeaderReader(ByteSource(codestream), "JPEG XL"), ((0, len(codestream)),))
    reader = BitReader(source)
    header = read_codestream(reader)
    head, copied = BitWriter(), 0
    if delays:
        start, end = header.places.animation
        head.copy(codestream, 0, start)
        _add_animation(head, plays)
        copied = end
    if deep:
        start, end = header.places.color
        head.copy(codestream, copied, start)
        add_srgb(head, gray=header.colors.gray)
        copied = end
    head.copy(codestream, copied, header.end)
    if not delays:
        reader.align()
        return head.data() + codestream[reader.position // 8 :]
    pieces = [head.data()]
    for delay, frame in zip(delays, read_frames(reader, header), strict=True):
        fields = BitWriter()
        start, end = frame.duration_at
        fields.copy(codestream, frame.start, start)
        fields.u32(delay, *DURATION)
        fields.copy(codestream, end, frame.filled)
        pieces += [fields.data(), codestream[frame.sizes // 8 : frame.end // 8]]
    return b"".join(pieces)


def _add_animation(writer: BitWriter, plays: int) -> None:
    """Add that ticks are milliseconds, and how often an animation plays, 0 for ever."""
    writer.u32(_MILLISECONDS, *RATE)
    writer.u32(1, *RATE_DIVISOR)
    writer.u32(plays, *PLAYS)
    writer.bits(0, 1)
