"""PNG: every pixel exactly, with 8 or 16 bits, unless the number of colors is limited."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import pyvips

from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.formats import palette
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.metadata import EXIF, XMP, Blocks, blob, keep_profile
from imgsvc_core.formats.png.deflating import (
    OF_PHOTOGRAPHS,
    THOROUGH,
    Way,
    best_way,
    best_way_of,
    deflated_photograph,
)
from imgsvc_core.formats.png.header import SIGNATURE, make_chunk, make_resolution
from imgsvc_core.formats.png.rewriting import chunks_of
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import MOST_EXAMINED, SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort
from imgsvc_core.formats.vips import to_array, to_depth

AFTER_HEADER = 33  # the bytes of the signature and of the first chunk
_ENOUGH_FOR_PHOTOGRAPHS = 3  # level 4 of zlib takes 10 to 27 % longer for .3 to 2.3 % less


def write(image: pyvips.Image | Raster, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write PNG, with a palette if that holds all colors and is smaller.

    It is interlaced only on request: interlacing makes files larger and prevents streaming rows. Interlaced
    files and large ones are written by libvips.
    """
    level = codec_effort("png", settings.effort)
    assert isinstance(level, int)
    if isinstance(image, Raster):
        if settings.colors is None and not settings.progressive:
            way = best_way(image.pixels, level, photograph=settings.photograph)
            return _write(way, [make_resolution(*image.resolution)], sink)
        image = image.to_vips()
    if settings.colors is not None:
        return _write_colors(image, settings, level, sink)
    width, height = size_of(image)
    if width * height > MOST_EXAMINED:
        return _write_large(image, settings, level, sink)
    quick = settings.photograph and level < THOROUGH and not settings.progressive
    filterable = min(width, height) > 1  # libpng leaves out the filter of photographs otherwise
    if quick and filterable and not numpy_pays(width * height):
        return _write_photograph(image, level, sink)
    if settings.progressive:
        image = image.copy_memory()  # its pixels are read twice, and may come in order only once
    way = best_way(to_array(image), level, photograph=settings.photograph)
    if settings.progressive:
        return _write_interlaced(way, image, level, sink)
    return _write(way, [png_chunks(image), *palette.metadata_chunks(image)], sink)


def _write_photograph(image: pyvips.Image, level: int, sink: Sink) -> SavedFacts:
    """Write what `best_way` chooses for photographs, with lines that libvips filters in place of NumPy."""
    encoded = image.pngsave_buffer(compression=0, filter=OF_PHOTOGRAPHS, keep="none")
    (_, header), *rest = palette.chunks_of(encoded)
    lines = zlib.decompress(b"".join(body for kind, body in rest if kind == b"IDAT"))
    data = deflated_photograph(lines, level)
    others = [make_chunk(b"IHDR", header), png_chunks(image), *palette.metadata_chunks(image)]
    sink.write(b"".join((SIGNATURE, *others, make_chunk(b"IDAT", data), make_chunk(b"IEND"))))
    return {"interlaced": False}


def _write(way: Way, others: Iterable[bytes], sink: Sink) -> SavedFacts:
    height, width, _ = way.stored.pixels.shape
    head, data = header_chunks(way, (width, height), others), way.deflated()
    sink.write(b"".join((SIGNATURE, *head, make_chunk(b"IDAT", data), make_chunk(b"IEND"))))
    return {**way.stored.facts(), "interlaced": False}


def header_chunks(way: Way, size: tuple[int, int], others: Iterable[bytes]) -> list[bytes]:
    """Return the header, other chunks, and the palette of a PNG."""
    stored = way.stored
    header = struct.pack(">IIBBBBB", *size, stored.bits, stored.color_type, 0, 0, 0)
    if stored.indexed is not None:
        return stored.indexed.head(header, others)
    return [make_chunk(b"IHDR", header), *others]


def _write_interlaced(way: Way, image: pyvips.Image, level: int, sink: Sink) -> SavedFacts:
    sink.insert(AFTER_HEADER, png_chunks(image))
    options: dict[str, object] = {"compression": level, "filter": way.filter, "interlace": True}
    if way.stored.indexed is None:
        sink.save(image, "png", keep=keep_profile(image), **options)
    else:
        sink.write(palette.encode(way.stored.indexed, image, **options))
    return {**way.stored.facts(), "interlaced": True}


def _write_large(image: pyvips.Image, settings: SaveSettings, level: int, sink: Sink) -> SavedFacts:
    """Write lines as they are computed, with filters that suit photographs."""
    thorough = level >= THOROUGH
    sink.insert(AFTER_HEADER, png_chunks(image))
    sink.save(
        image, "png", keep=keep_profile(image), interlace=settings.progressive is True,
        compression=level if thorough else min(level, _ENOUGH_FOR_PHOTOGRAPHS),
        filter="all" if thorough else "avg",
    )  # fmt: skip
    return {"interlaced": settings.progressive is True}


def png_chunks(image: pyvips.Image) -> bytes:
    """Return the chunks of a PNG that hold EXIF and XMP."""
    return b"".join(chunks_of(Blocks(blob(image, EXIF), blob(image, XMP))))


def _write_colors(image: pyvips.Image, settings: SaveSettings, level: int, sink: Sink) -> SavedFacts:
    """Write a picture that is reduced to some colors, unless it has no more."""
    assert settings.colors is not None
    image = to_depth(image, 8).copy_memory()
    indexed = palette.index_exactly(to_array(image), settings.colors)
    if indexed is None:
        sink.note(f"The colors are reduced to {settings.colors}.")
        indexed = palette.index_nearly(image, settings.colors)
    way = best_way_of(indexed, level)
    if settings.progressive:
        return _write_interlaced(way, image, level, sink)
    return _write(way, [png_chunks(image), *palette.metadata_chunks(image)], sink)
