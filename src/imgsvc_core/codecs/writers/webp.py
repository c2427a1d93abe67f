"""WebP: stills by libvips, animations put together here from frames that libvips encodes.

Encoders of whole animations merge equal frames and lengthen short delays. The container is that of the "WebP
Container Specification": VP8X, ANIM and one ANMF per frame.
"""

from __future__ import annotations

import struct

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.changes import changed_area, timing
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.headers.webp import FIRST_CHUNK, read_chunks
from imgsvc_core.codecs.metadata import keep_flags
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers.sink import Sink
from imgsvc_core.vipsimage import frame_count, split_frames

_BEFORE_FRAMES = (b"ICCP",)
_AFTER_FRAMES = (b"EXIF", b"XMP ")
_PIXELS = (b"ALPH", b"VP8 ", b"VP8L")
_FLAGS = {b"ICCP": 0x20, b"ALPH": 0x10, b"EXIF": 0x08, b"XMP ": 0x04}
_ANIMATION_FLAG = 0x02
_ALPHA_FLAG = 0x10
_DO_NOT_BLEND = 0x02
_LONGEST_DELAY = (1 << 24) - 1


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Still or animated, lossy or lossless."""
    options: dict[str, object] = {
        "Q": settings.quality, "lossless": settings.lossless, "effort": codec_effort("webp", settings.effort),
    }  # fmt: skip
    if frame_count(image) == 1:
        sink.save(image, "webp", keep=keep_flags(image), **options)
    else:
        sink.write(_animation(image.copy_memory(), options))


def _animation(image: pyvips.Image, options: dict[str, object]) -> bytes:
    """Each frame overwrites the rectangle that changed, so it shows what it is whatever came before."""
    frames = split_frames(image)
    delays, plays = timing(image, len(frames))
    width, height = frames[0].width, frames[0].height
    parts: list[bytes] = []
    extras: dict[bytes, bytes] = {}
    for index, frame in enumerate(frames):
        area = (0, 0, width, height) if index == 0 else changed_area(frames[index - 1], frame, grid=2)
        keep = keep_flags(image) if index == 0 else "none"
        single = frame.crop(*area).webpsave_buffer(keep=keep, **options)
        reader = HeaderReader(ByteSource(single), "WebP")
        chunks = [
            (kind, reader.read(start, length))
            for kind, start, length in read_chunks(reader, FIRST_CHUNK, reader.size)
        ]
        extras |= {kind: body for kind, body in chunks if kind in (*_BEFORE_FRAMES, *_AFTER_FRAMES)}
        pixels = b"".join(_chunk(kind, body) for kind, body in chunks if kind in _PIXELS)
        parts.append(_chunk(b"ANMF", _frame_header(area, delays[index]) + pixels))
    flags = _ANIMATION_FLAG | (_ALPHA_FLAG if image.hasalpha() else 0) | sum(_FLAGS[kind] for kind in extras)
    body = b"".join(
        (
            _chunk(b"VP8X", struct.pack("<I", flags) + _three_bytes(width - 1) + _three_bytes(height - 1)),
            *(_chunk(kind, extras[kind]) for kind in _BEFORE_FRAMES if kind in extras),
            _chunk(b"ANIM", struct.pack("<IH", 0, min(plays, 65_535))),
            *parts,
            *(_chunk(kind, extras[kind]) for kind in _AFTER_FRAMES if kind in extras),
        )
    )
    return b"".join((b"RIFF", struct.pack("<I", len(body) + 4), b"WEBP", body))


def _frame_header(area: tuple[int, int, int, int], delay: int) -> bytes:
    left, top, width, height = area
    fields = (left // 2, top // 2, width - 1, height - 1, min(delay, _LONGEST_DELAY))
    return b"".join(map(_three_bytes, fields)) + bytes((_DO_NOT_BLEND,))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return b"".join((kind, struct.pack("<I", len(body)), body, b"\0" * (len(body) % 2)))


def _three_bytes(value: int) -> bytes:
    return value.to_bytes(3, "little")
