"""PNG: every pixel exactly, with 8 or 16 bits, unless the number of colors is limited."""

from __future__ import annotations

import pyvips

from imgsvc_core.codecs.metadata import keep_profile, png_chunks
from imgsvc_core.codecs.readers.vips import to_array
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers import palette, small_png
from imgsvc_core.codecs.writers.content import MOST_EXAMINED, examine
from imgsvc_core.codecs.writers.prepare import to_depth
from imgsvc_core.codecs.writers.sink import Sink
from imgsvc_core.vipsimage import samples_of, size_of

_BITS = {2: 1, 4: 2, 16: 4, 256: 8}  # numbers of colors that libvips chooses by itself
_FEW_GRAYS = 16  # more of them need as many bits as without a palette
_FLAT, _VARIED = 0.8, 1 / 3
_FAST, _THOROUGH = 2, 7
_ENOUGH_FOR_PHOTOGRAPHS = 3  # level 4 takes 10 to 27 % longer for .3 to 2.3 % less
AFTER_HEADER = 33  # the bytes of the signature and of the first chunk
_SMALL = 64 * 64  # pixels; trying all filters takes less time than examining the picture


def write(image: pyvips.Image, settings: SaveSettings, sink: Sink) -> None:
    """Write PNG, interlaced only on request: interlacing makes files larger and prevents streaming rows."""
    level = codec_effort("png", settings.effort)
    assert isinstance(level, int)
    options: dict[str, object] = {"compression": level, "interlace": settings.progressive is True}
    sink.insert(AFTER_HEADER, png_chunks(image))
    image, indexed = _index(image, settings)
    if indexed is not None:
        sink.write(palette.encode(indexed, image, **options))
        return
    keep = keep_profile(image)
    if settings.colors is None and keep == "none" and not options["interlace"] and _is_small(image):
        sink.write(small_png.encode(to_array(image), (image.get("xres"), image.get("yres")), level))
        return
    if settings.colors is None:
        image, chosen = deflating(image, "png", settings)
        options |= chosen
    else:
        options |= {"palette": True, "bitdepth": _BITS[settings.colors]}
    sink.save(image, "png", keep=keep, **options)


def _index(image: pyvips.Image, settings: SaveSettings) -> tuple[pyvips.Image, palette.Indexed | None]:
    """Return the palette to write, if any, and the picture, in memory if its colors were counted."""
    if settings.colors is not None:
        image = to_depth(image, 8).copy_memory()
        indexed = palette.index_exactly(image, settings.colors)
        if indexed is None and settings.colors not in _BITS:
            indexed = palette.index_nearly(image, settings.colors)
        return image, indexed
    if settings.indexed and image.width * image.height <= MOST_EXAMINED:
        image = image.copy_memory()
        most = palette.MOST_COLORS if image.bands >= 3 else _FEW_GRAYS
        return image, palette.index_exactly(image, most)
    return image, None


def _is_small(image: pyvips.Image) -> bool:
    width, height = size_of(image)
    return width * height <= small_png.MOST_PIXELS and samples_of(image) == "uchar"


def deflating(
    image: pyvips.Image, format: str, settings: SaveSettings
) -> tuple[pyvips.Image, dict[str, object]]:
    """Return the filter of lines and the level of zlib that suit a picture.

    The picture comes first, in memory if it was examined. Differences between neighbors make photographs a
    third smaller, but flat drawings up to a fifth larger, and dithered ones half as large again.
    If a picture has both, the best filter is chosen for each line. The differences of photographs hardly
    repeat, so a longer search for repetitions gains nothing.
    """
    level = codec_effort(format, settings.effort)
    assert isinstance(level, int)
    if image.width * image.height <= _SMALL:
        return image, {"compression": level, "filter": "all"}
    image, content = examine(image, settings)
    if content.flat > _FLAT or content.repeats:
        return image, {"compression": level, "filter": "none"}
    if content.flat < _VARIED and level < _THOROUGH:
        return image, {"compression": min(level, _ENOUGH_FOR_PHOTOGRAPHS), "filter": "avg"}
    return image, {"compression": level, "filter": "all" if level > _FAST else "sub"}
