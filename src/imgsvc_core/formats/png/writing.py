"""PNG: every pixel exactly, with 8 or 16 bits, unless the number of colors is limited."""

from __future__ import annotations

from collections.abc import Mapping

import pyvips

from imgsvc_core._runtime.vipsimage import samples_of, size_of
from imgsvc_core.formats import palette
from imgsvc_core.formats.content import Content, examine
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.metadata import EXIF, XMP, Blocks, blob, keep_profile
from imgsvc_core.formats.png import small_writing as small_png
from imgsvc_core.formats.png.rewriting import chunks_of
from imgsvc_core.formats.raster import Raster
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.sink import Sink
from imgsvc_core.formats.table import codec_effort
from imgsvc_core.formats.vips import to_array, to_depth

_FEW_GRAYS = 16  # more of them need as many bits as without a palette
_FLAT, _VARIED = 0.8, 1 / 3
_FAST, _THOROUGH = 2, 7
_ENOUGH_FOR_PHOTOGRAPHS = 3  # level 4 takes 10 to 27 % longer for .3 to 2.3 % less
AFTER_HEADER = 33  # the bytes of the signature and of the first chunk
_MOST_WITH_ALL_FILTERS = 64 * 64  # pixels; trying all filters takes little time


def write(image: pyvips.Image | Raster, settings: SaveSettings, sink: Sink) -> SavedFacts:
    """Write PNG, with a palette if that holds all colors and is smaller.

    It is interlaced only on request: interlacing makes files larger and prevents streaming rows.
    """
    level = codec_effort("png", settings.effort)
    assert isinstance(level, int)
    options: dict[str, object] = {"compression": level, "interlace": settings.progressive is True}
    facts: SavedFacts = {"interlaced": settings.progressive is True}
    if isinstance(image, Raster):
        height, width, _ = image.pixels.shape
        if settings.colors is None and not settings.progressive and width * height <= small_png.MOST_PIXELS:
            data, facts = small_png.encode(image.pixels, image.resolution, level)
            sink.write(data)
            return facts
        image = image.to_vips()
    sink.insert(AFTER_HEADER, png_chunks(image))
    if settings.colors is not None:
        return {**facts, **_write_colors(image, settings.colors, options, sink)}
    keep = keep_profile(image)
    if keep == "none" and not options["interlace"] and _is_small(image):
        resolution = image.get("xres"), image.get("yres")
        data, facts = small_png.encode(to_array(image), resolution, level)
        sink.write(data)
        return facts
    image, content = examine(image, settings)
    options |= deflating(image, content, level)
    indexed = index(image, content)
    if indexed is None:
        sink.save(image, "png", keep=keep, **options)
        return facts
    graded = indexed.are_gray and indexed.bits == 8 and image.width * image.height > _MOST_WITH_ALL_FILTERS
    data = palette.encode(indexed, image, **(options if graded else {**options, "filter": "none"}))
    if options["filter"] != "none" and not graded:
        plain = Sink()
        plain.save(image, "png", keep=keep, **options)
        if len(plain.data) < len(data):
            sink.write(plain.data)
            return facts
    sink.write(data)
    return {**facts, **indexed.facts()}


def png_chunks(image: pyvips.Image) -> bytes:
    """Return the chunks of a PNG that hold EXIF and XMP."""
    return b"".join(chunks_of(Blocks(blob(image, EXIF), blob(image, XMP))))


def _write_colors(image: pyvips.Image, colors: int, options: Mapping[str, object], sink: Sink) -> SavedFacts:
    """Write a picture that is reduced to so many colors, unless it has no more."""
    image = to_depth(image, 8).copy_memory()
    indexed = palette.index_exactly(to_array(image), colors)
    if indexed is None:
        sink.note(f"The colors are reduced to {colors}.")
        indexed = palette.index_nearly(image, colors)
    sink.write(palette.encode(indexed, image, **options))
    return indexed.facts()


def index(image: pyvips.Image, content: Content) -> palette.Indexed | None:
    """Return all colors of a picture if they are few enough that a palette may make it smaller."""
    if not content.few:
        return None
    return palette.index_exactly(to_array(image), palette.MOST_COLORS if image.bands >= 2 else _FEW_GRAYS)


def _is_small(image: pyvips.Image) -> bool:
    width, height = size_of(image)
    return width * height <= small_png.MOST_PIXELS and samples_of(image) == "uchar"


def deflating(image: pyvips.Image, content: Content, level: int) -> dict[str, object]:
    """Return the filter of lines and the level of zlib that suit a picture.

    Differences between neighbors make photographs a third smaller, but flat drawings up to a fifth larger,
    and dithered ones half as large again. If a picture has both, the best filter is chosen for each line. The
    differences of photographs hardly repeat, so a longer search for repetitions gains nothing.
    """
    if image.width * image.height <= _MOST_WITH_ALL_FILTERS:
        return {"compression": level, "filter": "all"}
    if content.flat > _FLAT or content.repeats:
        return {"compression": level, "filter": "none"}
    if content.flat < _VARIED and level < _THOROUGH:
        return {"compression": min(level, _ENOUGH_FOR_PHOTOGRAPHS), "filter": "avg"}
    return {"compression": level, "filter": "all" if level > _FAST else "sub"}
