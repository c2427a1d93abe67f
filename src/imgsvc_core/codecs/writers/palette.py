"""PNG with a palette: of all colors of the picture, or of as many as are asked for.

libvips chooses 2, 4, 16 or 256 colors, and none exactly. But it can write the numbers of colors as a gray
picture, whose lines are stored as those of an indexed one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers import png
from imgsvc_core.codecs.headers.png import make_chunk
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.metadata import keep_profile
from imgsvc_core.codecs.readers.vips import from_array, to_array

MOST_COLORS = 256
_INDEXED = 3  # the color type of such a PNG
_PIXELS = (b"IHDR", b"IDAT", b"IEND")
_SAMPLED_PIXELS = 4096
_AT_ONCE = 1 << 17  # pixels whose colors are counted
_DITHERED = 128  # more colors show no steps


@attrs.frozen
class Indexed:
    """The colors of a picture as an array of (n, 4), RGBA, and the number of each pixel's color.

    The colors that are not opaque come first. ``bands`` are those of the picture. Grays at equal distances
    need no palette.
    """

    colors: Any
    numbers: Any
    bands: int

    @property
    def bits(self) -> int:
        """Bits per pixel."""
        return next(bits for bits in (1, 2, 4, 8) if len(self.colors) <= 1 << bits)

    def head(self, header: bytes, others: Iterable[bytes] = ()) -> list[bytes]:
        """Return the chunks before the pixels: ``header`` is that of the numbers, others belong between."""
        levels = [level * 255 // ((1 << self.bits) - 1) for level in range(len(self.colors))]
        if self.bands == 1 and self.bits < 8 and self.colors[:, 0].tolist() == levels:
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
    """Number the colors of an array of (height, width, bands); `None` if they are more, or have 16 bits."""
    import numpy as np

    if pixels.dtype != np.uint8:
        return None
    height, width, bands = pixels.shape
    rows = max(1, _AT_ONCE // width)
    sample = pixels.reshape(-1, bands)[:: max(1, height * width // _SAMPLED_PIXELS)]
    colors = np.unique(_packed(sample))
    for top in range(0, height, rows):
        if len(colors) > most:
            return None
        colors = np.union1d(colors, _starts(_packed(pixels[top : top + rows]))[1])
    if len(colors) > most:
        return None
    numbers = np.empty((height, width), np.uint8)
    for top in range(0, height, rows):
        places, starts = _starts(_packed(pixels[top : top + rows]))
        part = numbers[top : top + rows]
        lengths = np.diff(places, append=part.size)
        part[:] = np.repeat(np.searchsorted(colors, starts).astype(np.uint8), lengths).reshape(part.shape)
    return Indexed(colors[:, None].view(np.uint8), numbers, bands)


def _packed(pixels: Any) -> Any:
    """Return each pixel of 8 bits as a number whose highest byte is alpha."""
    import numpy as np

    bands = pixels.shape[-1]
    rgba = np.full((pixels.size // bands, 4), 255, np.uint8)
    rgba[:, :3] = pixels.reshape(-1, bands)[:, : 3 if bands >= 3 else 1]
    if bands in (2, 4):
        rgba[:, 3] = pixels.reshape(-1, bands)[:, -1]
    return rgba.view("<u4").reshape(-1)


def _starts(packed: Any) -> tuple[Any, Any]:
    """Return where runs of one color start, and these colors: most neighbors in graphics are equal."""
    import numpy as np

    places = np.flatnonzero(np.concatenate(([True], packed[1:] != packed[:-1])))
    return places, packed[places]


def index_nearly(image: pyvips.Image, most: int) -> Indexed:
    """Number the colors of a picture of 8 bits that is reduced to ``most`` colors.

    Of the 256 colors that libvips chooses, those are merged that cost the least: near ones that few pixels
    have. An opaque picture is dithered if few remain.
    """
    import numpy as np
    from PIL import Image

    encoded = image.pngsave_buffer(palette=True, bitdepth=8, compression=1, keep="none")
    chosen = index_exactly(to_array(pyvips.Image.pngload_buffer(encoded)), MOST_COLORS)
    assert chosen is not None
    merged = _merged(chosen.colors, np.bincount(chosen.numbers.reshape(-1)), most)
    rgba = merged[chosen.numbers]
    if most <= _DITHERED and rgba[..., 3].min() == 255:
        palette = Image.new("P", (1, 1))
        palette.putpalette(np.unique(merged[:, :3], axis=0).tobytes())
        rgb = image.colourspace("srgb").extract_band(0, n=3).numpy()
        rgba[..., :3] = np.asarray(Image.fromarray(rgb).quantize(palette=palette).convert("RGB"))
    indexed = index_exactly(rgba if image.hasalpha() else rgba[..., :3], most)
    assert indexed is not None
    return indexed


def encode(indexed: Indexed, image: pyvips.Image, **options: object) -> bytes:
    """Encode as PNG, with the profile of the image; ``options`` go to libvips' PNG writer."""
    (_, header), *body = chunks_of(
        from_array(indexed.numbers).pngsave_buffer(
            keep="none", filter="none", bitdepth=indexed.bits, **options
        )
    )
    head = indexed.head(header, metadata_chunks(image))
    return b"".join((png.SIGNATURE, *head, *(make_chunk(*chunk) for chunk in body if chunk[0] in _PIXELS)))


def metadata_chunks(image: pyvips.Image) -> list[bytes]:
    """Return the chunks of the profile and the resolution of an image."""
    corner = chunks_of(image.crop(0, 0, 1, 1).pngsave_buffer(keep=keep_profile(image)))
    return [make_chunk(kind, content) for kind, content in corner if kind not in _PIXELS]


def chunks_of(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return kind and content of the chunks of a PNG."""
    reader = HeaderReader(ByteSource(data), "PNG")
    return [(chunk.kind, png.read_content(reader, chunk)) for chunk in png.read_chunks(reader)]


def _merged(colors: Any, counts: Any, most: int) -> Any:
    """Return the color that each color becomes, so that at most ``most`` remain (Ward's method)."""
    import numpy as np

    points = colors.astype(np.float64)
    points[:, :3] *= points[:, 3:] / 255
    weights = counts.astype(np.float64)
    becomes = np.arange(len(points))
    costs = np.full((len(points), len(points)), np.inf)

    def update(index: int) -> None:
        """Compute the cost of merging a color with each of the others."""
        squares = ((points - points[index]) ** 2).sum(axis=1)
        row = squares * weights * weights[index] / (weights + weights[index])
        row[becomes != np.arange(len(points))] = np.inf
        row[index] = np.inf
        costs[index], costs[:, index] = row, row

    for index in range(len(points)):
        update(index)
    for _ in range(len(points) - most):
        kept, gone = divmod(int(costs.argmin()), len(points))
        total = weights[kept] + weights[gone]
        points[kept] = (points[kept] * weights[kept] + points[gone] * weights[gone]) / total
        weights[kept] = total
        becomes[becomes == gone] = kept
        costs[gone], costs[:, gone] = np.inf, np.inf
        update(kept)
    points[:, :3] *= 255 / np.maximum(points[:, 3:], 1)
    return np.rint(np.clip(points, 0, 255)).astype(np.uint8)[becomes]
