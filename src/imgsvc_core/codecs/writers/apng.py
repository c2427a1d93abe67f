"""Animated PNG, frame by frame through libvips' PNG codec, with 8 or 16 bits."""

from __future__ import annotations

import struct

import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.changes import changed_area, timing
from imgsvc_core.codecs.headers import png
from imgsvc_core.codecs.headers.png import make_chunk
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.metadata import keep_profile, png_chunks
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.writers.png import AFTER_HEADER, deflating
from imgsvc_core.codecs.writers.sink import Sink
from imgsvc_core.vipsimage import frame_count, split_frames


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Write all frames; never interlaced."""
    image, options = deflating(image.copy_memory(), "apng", settings)
    sink.insert(AFTER_HEADER, png_chunks(image))
    sink.write(_encode(image, options))


def _encode(image: pyvips.Image, options: dict[str, object]) -> bytes:
    """Encode each frame of a strip as the rectangle that changed; ``options`` go to libvips' PNG writer."""
    frames = split_frames(image)
    delays, plays = timing(image, frame_count(image))
    written = [png.SIGNATURE]
    sequence = 0
    keep = keep_profile(image)
    for index, frame in enumerate(frames):
        area = (0, 0, frame.width, frame.height) if index == 0 else changed_area(frames[index - 1], frame)
        single = frame.crop(*area).pngsave_buffer(keep=keep if index == 0 else "none", **options)
        reader = HeaderReader(ByteSource(single), "PNG")
        chunks = [(chunk.kind, png.read_content(reader, chunk)) for chunk in png.read_chunks(reader)]
        pixels = b"".join(body for kind, body in chunks if kind == b"IDAT")
        if index == 0:
            head = [make_chunk(kind, body) for kind, body in chunks if kind not in (b"IDAT", b"IEND")]
            head.insert(1, make_chunk(b"acTL", struct.pack(">II", len(frames), plays)))
            written += head
        left, top, width, height = area
        control = (sequence, width, height, left, top, *_fraction(delays[index]), png.KEEP, png.SOURCE)
        written.append(make_chunk(b"fcTL", struct.pack(">IIIIIHHBB", *control)))
        sequence += 1
        if index == 0:
            written.append(make_chunk(b"IDAT", pixels))
        else:
            written.append(make_chunk(b"fdAT", struct.pack(">I", sequence), pixels))
            sequence += 1
    written.append(make_chunk(b"IEND", b""))
    return b"".join(written)


def _fraction(milliseconds: int) -> tuple[int, int]:
    """Return a delay as a fraction of 16 bits each: exact up to 65 s, then in tenths or whole seconds."""
    for denominator in (1000, 100, 10):
        numerator = round(milliseconds * denominator / 1000)
        if numerator <= 65_535:
            return numerator, denominator
    return min(round(milliseconds / 1000), 65_535), 1
