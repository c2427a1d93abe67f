"""PNG with a palette of all colors of the picture, or of a requested number.

libvips writes the numbers of the colors as a gray picture, whose lines are stored as those of an indexed one.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable
from typing import Any

import pyvips

from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import SavedFacts
from imgsvc_core.formats.metadata import blob
from imgsvc_core.formats.png import header as png
from imgsvc_core.formats.png.header import make_chunk, make_resolution
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.vips import from_array, to_array

MOST_COLORS = 256
_INDEXED = 3  # the color type of such a PNG
_PIXELS = (b"IHDR", b"IDAT", b"IEND")
_OPAQUE = 255
_SAMPLED_PIXELS = 1024  # enough to see that photographs have too many colors
_COUNTED_PIXELS = 1 << 16  # enough to tell which colors are usual
_AT_ONCE = 1 << 17  # pixels whose colors are counted
_DITHERED_ALPHA = 100  # the least colors for which those of libvips, which dithers alpha, look better
_DITHERED_GRAYS = 64  # up to so many grays, Pillow tells all of them apart


@frozen
class Indexed:
    """The colors of a picture as an array of (n, 4), RGBA, and the number of each pixel's color.

    The colors that are not opaque come first. ``bands`` are those of the picture. Grays at equal distances
    need no palette.
    """

    colors: Any
    numbers: Any
    bands: int

    @property
    def are_gray(self) -> bool:
        """Return True if all colors are grays, so that near numbers are near colors."""
        return bool((self.colors[:, :2] == self.colors[:, 1:3]).all())

    @property
    def bits(self) -> int:
        """Bits per pixel."""
        return next(bits for bits in (1, 2, 4, 8) if len(self.colors) <= 1 << bits)

    @functools.cached_property
    def are_levels(self) -> bool:
        """True if the numbers of the colors are grays of so many bits."""
        if self.bands != 1 or (bits := self.bits) == 8:
            return False
        levels = [level * 255 // ((1 << bits) - 1) for level in range(len(self.colors))]
        return bool(self.colors[:, 0].tolist() == levels)

    def by_frequency(self) -> Indexed:
        """Return the same colors, the usual ones first, which compresses better. Opaque ones stay last."""
        import numpy as np

        step = max(1, self.numbers.size // _COUNTED_PIXELS)
        counts = np.bincount(self.numbers.reshape(-1)[::step], minlength=len(self.colors))
        order = np.lexsort((-counts, self.colors[:, 3] == _OPAQUE))
        number_of = np.empty(len(order), np.uint8)
        number_of[order] = np.arange(len(order), dtype=np.uint8)
        return Indexed(self.colors[order], number_of[self.numbers], self.bands)

    def facts(self) -> SavedFacts:
        """Return the facts of a PNG that holds the numbers."""
        if self.are_levels:
            return {"colorspace": "gray", "depth": self.bits}
        return {"colorspace": "palette", "depth": 8}

    def head(self, header: bytes, others: Iterable[bytes] = ()) -> list[bytes]:
        """Return the chunks before the pixels: the header, adapted from the gray picture's, others, and the
        colors."""
        if self.are_levels:
            return [make_chunk(b"IHDR", header), *others]
        has_alpha, opacity = self.bands in (2, 4), self.colors[:, 3]
        not_opaque = opacity[: max(1, int((opacity < 255).sum()))]  # by this chunk readers tell alpha
        return [
            make_chunk(b"IHDR", header[:9], bytes((_INDEXED,)), header[10:]),
            *others,
            make_chunk(b"PLTE", self.colors[:, :3].tobytes()),
            *([make_chunk(b"tRNS", not_opaque.tobytes())] if has_alpha else ()),
        ]


def index_exactly(pixels: Any, most: int) -> Indexed | None:
    """Number the colors of an array of (height, width, bands). Return None for more, and for 16 bits."""
    import numpy as np

    if pixels.dtype != np.uint8:
        return None
    height, width, bands = pixels.shape
    step = height * width // _SAMPLED_PIXELS
    if step > 1 and len(_distinct(_packed(pixels.reshape(-1, bands)[::step]))) > most:
        return None
    rows = max(1, _AT_ONCE // width)
    tops = range(0, height, rows)
    colors, runs, held = np.empty(0, np.uint32), [], 0
    for top in tops:
        lengths, starts = _runs(_packed(pixels[top : top + rows]))
        colors = _distinct(np.concatenate((colors, starts)))
        if len(colors) > most:
            return None
        held += len(starts)
        runs.append((lengths, starts) if held <= _AT_ONCE else None)
    numbers = np.empty((height, width), np.uint8)
    for top, found in zip(tops, runs, strict=True):
        lengths, starts = found or _runs(_packed(pixels[top : top + rows]))
        part = numbers[top : top + rows]
        part[:] = np.repeat(np.searchsorted(colors, starts).astype(np.uint8), lengths).reshape(part.shape)
    return Indexed(colors[:, None].view(np.uint8), numbers, bands)


def has_at_most(colors: int, pixels: Any) -> bool:
    """Return True if an array of (height, width, bands) of 8 bits has no more colors."""
    lines = pixels.reshape(-1, pixels.shape[-1])
    return all(len(_distinct(_runs(_packed(some))[1])) <= colors for some in (lines[::16], lines))


def _packed(pixels: Any) -> Any:
    """Return each pixel of 8 bits as a number whose highest byte is alpha."""
    import numpy as np

    bands = pixels.shape[-1]
    pixels = np.ascontiguousarray(pixels).reshape(-1, bands)
    if bands == 4:
        return pixels.view("<u4").reshape(-1)
    if bands == 3:  # the fourth byte of each number is one of the next pixel
        shared = np.ndarray(len(pixels), "<u4", np.append(pixels, np.uint8(0)).data, strides=(3,))
        return shared | 0xFF000000
    alpha = pixels[:, 1].astype("<u4") if bands == 2 else np.uint32(255)
    return pixels[:, 0].astype("<u4") * 0x010101 | alpha << 24


def _distinct(packed: Any) -> Any:
    """Return each color once, in order. ``numpy.unique`` takes several times as long."""
    import numpy as np

    return _runs(np.sort(packed))[1]


def _runs(packed: Any) -> tuple[Any, Any]:
    """Return the lengths and the colors of runs of one color: most neighbors in graphics are equal."""
    import numpy as np

    ends = np.flatnonzero(np.concatenate(([True], packed[1:] != packed[:-1], [True])))
    return ends[1:] - ends[:-1], packed[ends[:-1]]


def index_nearly(image: pyvips.Image, most: int) -> Indexed:
    """Number the colors of a picture of 8 bits that is reduced to ``most`` colors.

    Opaque pictures are dithered, except in many grays, which show no steps.
    """
    import numpy as np
    from PIL import Image

    from imgsvc_core.formats.quantizer import Histogram

    pixels = to_array(image)
    rgba = _packed(pixels).view(np.uint8).reshape(-1, 4)
    shape = *pixels.shape[:2], 4
    if image.bands == 3 or (image.bands == 1 and most <= _DITHERED_GRAYS):
        palette = Image.new("P", (1, 1))
        palette.putpalette(Histogram.of(rgba).choose(most)[:, :3].tobytes())
        picture = Image.fromarray(np.ascontiguousarray(rgba.reshape(shape)[..., :3]))
        rgba[:, :3] = np.asarray(picture.quantize(palette=palette).convert("RGB")).reshape(-1, 3)
    else:
        dithered = _dithered(image, most) if image.hasalpha() and most >= _DITHERED_ALPHA else None
        colors, numbers = dithered or _reduced(rgba, most)
        rgba = _with_solid(colors, numbers, rgba)
    rgba = rgba.reshape(shape)
    indexed = index_exactly(rgba if image.hasalpha() else rgba[..., :3], most)
    assert indexed is not None
    return indexed


def _dithered(image: pyvips.Image, most: int) -> tuple[Any, Any] | None:
    """Return the colors that libvips chooses, and the number of each pixel's; None for too many."""
    encoded = image.pngsave_buffer(palette=True, bitdepth=8, compression=1, keep="none")
    indexed = index_exactly(to_array(pyvips.Image.pngload_buffer(encoded)), most)
    return None if indexed is None else (indexed.colors.copy(), indexed.numbers.reshape(-1))


def _reduced(rgba: Any, most: int) -> tuple[Any, Any]:
    """Return the colors that suit the pixels best, and the number of the nearest one for each."""
    import numpy as np

    from imgsvc_core.formats.quantizer import Histogram, nearest

    shows = rgba[:, 3] > 0
    visible = rgba[shows]
    visible[:, :3] = np.rint(visible[:, :3] * (visible[:, 3:] / 255))  # colors count by how visible they are
    histogram = Histogram.of(visible)
    invisible = [[0, 0, 0, 0]] if len(visible) < len(rgba) else []
    chosen = np.array([*histogram.choose(most - len(invisible)), *invisible], np.float64)
    numbers = np.full(len(rgba), len(chosen) - 1, np.uint8)
    numbers[shows] = nearest(histogram.colors, chosen).astype(np.uint8)[histogram.numbers(visible)]
    chosen[:, :3] *= 255 / np.maximum(chosen[:, 3:], 1)
    return np.rint(chosen.clip(0, 255)).astype(np.uint8), numbers


def _with_solid(colors: Any, numbers: Any, rgba: Any) -> Any:
    """Return the pixels in their colors, except that opaque ones stay opaque, and invisible ones invisible.

    Otherwise the ground would shine through a picture of few colors, and would be tinted beside it.
    """
    import numpy as np

    from imgsvc_core.formats.quantizer import nearest

    counts, opaque, clear = np.zeros((3, len(colors)))
    for start in range(0, len(rgba), _AT_ONCE):
        part, alpha = numbers[start : start + _AT_ONCE], rgba[start : start + _AT_ONCE, 3]
        counts += np.bincount(part, minlength=len(colors))
        opaque += np.bincount(part, alpha == _OPAQUE, len(colors))
        clear += np.bincount(part, alpha == 0, len(colors))
    gone = clear > counts / 2
    gone[clear.argmax()] |= clear.any()
    solid = (opaque > counts / 2) & ~gone
    solid[np.where(gone, -1, opaque).argmax()] |= opaque.any()
    colors[solid, 3], colors[gone] = _OPAQUE, 0
    shown = colors[numbers]
    shown[rgba[:, 3] == 0] = 0
    lost = (rgba[:, 3] == _OPAQUE) & (shown[:, 3] < _OPAQUE)
    if lost.any():
        packed = rgba.view("<u4")[lost, 0] & 0xFFF8F8F8  # near colors count as one: there may be millions
        kinds = _distinct(packed)
        palette = colors[solid]
        shown[lost] = palette[nearest(kinds[:, None].view(np.uint8), palette)][np.searchsorted(kinds, packed)]
    return shown


def encode(indexed: Indexed, image: pyvips.Image, **options: object) -> bytes:
    """Encode as PNG, with the profile of the image; ``options`` go to libvips' PNG writer.

    Lines have no filter by default, as differences of numbers mean nothing.
    """
    (_, header), *body = chunks_of(
        from_array(indexed.numbers).pngsave_buffer(
            **{"keep": "none", "filter": "none", "bitdepth": indexed.bits, **options}
        )
    )
    head = indexed.head(header, metadata_chunks(image))
    return b"".join((png.SIGNATURE, *head, *(make_chunk(*chunk) for chunk in body if chunk[0] in _PIXELS)))


def metadata_chunks(image: pyvips.Image) -> list[bytes]:
    """Return the chunks of the profile and the resolution of an image."""
    profile = blob(image, PROFILE)
    color = [make_chunk(b"iCCP", b"icc\0\0", zlib.compress(profile))] if profile else []
    return [*color, make_resolution(image.get("xres"), image.get("yres"))]


def chunks_of(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return kind and content of the chunks of a PNG."""
    reader = HeaderReader(ByteSource(data), "PNG")
    return [(chunk.kind, png.read_content(reader, chunk)) for chunk in png.read_chunks(reader)]
