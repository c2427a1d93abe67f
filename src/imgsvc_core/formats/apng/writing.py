"""Animated PNG, frame by frame through libvips' PNG codec, with 8 or 16 bits."""

from __future__ import annotations

import struct

import pyvips

from imgsvc_core._runtime.vipsimage import frame_count, split_frames
from imgsvc_core.formats.changes import changed_area, timing
from imgsvc_core.formats.content import examine
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.palette import Indexed, chunks_of, metadata_chunks
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.png.header import make_chunk
from imgsvc_core.formats.png.writing import AFTER_HEADER, deflating, index, png_chunks
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort
from imgsvc_core.formats.vips import from_array


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write all frames, with a palette if that holds all colors and is smaller; never interlaced."""
    level = codec_effort("apng", settings.effort)
    assert isinstance(level, int)
    image, content = examine(image.copy_memory(), settings)
    options = deflating(image, content, level)
    indexed = index(image, content)
    encoded: list[tuple[bytes, SavedFacts]] = []
    if indexed is not None:
        numbers = from_array(indexed.numbers).copy()
        numbers.set_type(pyvips.GValue.gint_type, "page-height", image.get_page_height())
        by_number = {"compression": level, "filter": "none", "bitdepth": indexed.bits}
        encoded.append((_encode(image, numbers, by_number, indexed), indexed.facts()))
    if indexed is None or options["filter"] != "none":
        encoded.append((_encode(image, image, options), {}))
    data, facts = min(encoded, key=lambda one: len(one[0]))
    sink.insert(AFTER_HEADER, png_chunks(image))
    sink.write(data)
    frames = frame_count(image)
    if frames == 1:
        return facts
    delays, plays = timing(image, frames)
    exact = [1000 * numerator / denominator for numerator, denominator in map(_fraction, delays)]
    return {**facts, "delays": png.whole_delays(exact), "plays": plays}


def _encode(
    image: pyvips.Image, stored: pyvips.Image, options: dict[str, object], indexed: Indexed | None = None
) -> bytes:
    """Encode each frame of a strip as the rectangle that changed.

    What is stored are the pixels or the numbers of their colors; ``options`` go to libvips' PNG writer.
    """
    frames = split_frames(stored)
    delays, plays = timing(image, frame_count(image))
    written = [png.SIGNATURE]
    sequence = 0
    for number, frame in enumerate(frames):
        area = (0, 0, frame.width, frame.height) if number == 0 else changed_area(frames[number - 1], frame)
        chunks = chunks_of(frame.crop(*area).pngsave_buffer(keep="none", **options))
        pixels = b"".join(body for kind, body in chunks if kind == b"IDAT")
        if number == 0:
            (kind, header), others = chunks[0], metadata_chunks(image)
            head = indexed.head(header, others) if indexed else [make_chunk(kind, header), *others]
            head.insert(1, make_chunk(b"acTL", struct.pack(">II", len(frames), plays)))
            written += head
        left, top, width, height = area
        control = (sequence, width, height, left, top, *_fraction(delays[number]), png.KEEP, png.SOURCE)
        written.append(make_chunk(b"fcTL", struct.pack(">IIIIIHHBB", *control)))
        sequence += 1
        if number == 0:
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
