"""Animated PNG, frame by frame, with 8 or 16 bits."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyvips

from imgsvc_core._runtime.vipsimage import frame_count, split_frames
from imgsvc_core.formats.changes import changed_area, timing
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.palette import metadata_chunks
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.png.deflating import Way, best_way
from imgsvc_core.formats.png.header import make_chunk
from imgsvc_core.formats.png.writing import header_chunks, png_chunks
from imgsvc_core.formats.settings import MOST_EXAMINED, SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort
from imgsvc_core.formats.vips import to_array


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write all frames, with a palette if that holds all colors and is smaller; never interlaced."""
    level = codec_effort("apng", settings.effort)
    assert isinstance(level, int)
    image = image.copy_memory()
    large = image.width * image.height > MOST_EXAMINED
    way = best_way(to_array(image), level, photograph=settings.photograph or large)
    sink.write(b"".join(_chunks(image, way)))
    frames = frame_count(image)
    if frames == 1:
        return way.stored.facts()
    delays, plays = timing(image, frames)
    exact = [1000 * numerator / denominator for numerator, denominator in map(_fraction, delays)]
    return {**way.stored.facts(), "delays": png.whole_delays(exact), "plays": plays}


def _chunks(image: pyvips.Image, way: Way) -> Iterator[bytes]:
    """Yield the parts of a file that has each frame of a strip as the rectangle that changed."""
    frames = split_frames(image)
    delays, plays = timing(image, len(frames))
    width, height = image.width, image.get_page_height()
    others = [png_chunks(image), *metadata_chunks(image)]
    header, *rest = header_chunks(way, (width, height), others)
    yield from (png.SIGNATURE, header, make_chunk(b"acTL", struct.pack(">II", len(frames), plays)), *rest)
    sequence = 0
    for number, frame in enumerate(frames):
        area = (0, 0, width, height) if number == 0 else changed_area(frames[number - 1], frame)
        left, top, *size = area
        control = (sequence, *size, left, top, *_fraction(delays[number]), png.KEEP, png.SOURCE)
        yield make_chunk(b"fcTL", struct.pack(">IIIIIHHBB", *control))
        sequence += 1
        pixels = way.deflated((left, number * height + top, *size))
        if number == 0:
            yield make_chunk(b"IDAT", pixels)
        else:
            yield make_chunk(b"fdAT", struct.pack(">I", sequence), pixels)
            sequence += 1
    yield make_chunk(b"IEND")


def _fraction(milliseconds: int) -> tuple[int, int]:
    """Return a delay as a fraction of 16 bits each: exact up to 65 s, then in tenths or whole seconds."""
    for denominator in (1000, 100, 10):
        numerator = round(milliseconds * denominator / 1000)
        if numerator <= 65_535:
            return numerator, denominator
    return min(round(milliseconds / 1000), 65_535), 1
