"""PNG with a palette: of all colors of the picture, or of as many as are asked for.

libvips chooses 2, 4, 16 or 256 colors, and none exactly. But it can write the numbers of colors as a gray
picture, whose lines are stored as those of an indexed one.
"""

from __future__ import annotations

from typing import Any

import attrs
import pyvips

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers import png
from imgsvc_core.codecs.headers.png import make_chunk
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.metadata import keep_profile
from imgsvc_core.codecs.readers.vips import from_array
from imgsvc_core.vipsimage import samples_of

MOST_COLORS = 256
_INDEXED = 3  # the color type of such a PNG
_PIXELS = (b"IHDR", b"IDAT", b"IEND")
_SAMPLED_PIXELS = 4096
_DITHERED = 128  # more colors show no steps


@attrs.frozen
class Indexed:
    """The colors of a picture as an array of (n, 4), RGBA, and the number of each pixel's color.

    The colors that are not opaque come first.
    """

    colors: Any
    numbers: Any

    @property
    def bits(self) -> int:
        """Bits per pixel."""
        return next(bits for bits in (1, 2, 4, 8) if len(self.colors) <= 1 << bits)


def index_exactly(image: pyvips.Image, most: int) -> Indexed | None:
    """Number the colors of a picture; `None` if it has more than ``most``, or 16 bits."""
    import numpy as np

    if samples_of(image) != "uchar":
        return None
    pixels = image.numpy().reshape(image.height, image.width, image.bands)
    rgba = np.full((image.height, image.width, 4), 255, np.uint8)
    rgba[..., :3] = pixels[..., :3] if image.bands >= 3 else pixels[..., :1]
    if image.hasalpha():
        rgba[..., 3] = pixels[..., -1]
    return _number(rgba, most)


def index_nearly(image: pyvips.Image, most: int) -> Indexed:
    """Number the colors of a picture of 8 bits that is reduced to ``most`` colors.

    Of the 256 colors that libvips chooses, those are merged that cost the least: near ones that few pixels
    have. An opaque picture is dithered if few remain.
    """
    import numpy as np
    from PIL import Image

    encoded = image.pngsave_buffer(palette=True, bitdepth=8, compression=1, keep="none")
    chosen = index_exactly(pyvips.Image.pngload_buffer(encoded), MOST_COLORS)
    assert chosen is not None
    merged = _merged(chosen.colors, np.bincount(chosen.numbers.reshape(-1)), most)
    rgba = merged[chosen.numbers]
    if most <= _DITHERED and rgba[..., 3].min() == 255:
        palette = Image.new("P", (1, 1))
        palette.putpalette(np.unique(merged[:, :3], axis=0).tobytes())
        rgb = image.colourspace("srgb").extract_band(0, n=3).numpy()
        rgba[..., :3] = np.asarray(Image.fromarray(rgb).quantize(palette=palette).convert("RGB"))
    indexed = _number(rgba, most)
    assert indexed is not None
    return indexed


def encode(indexed: Indexed, image: pyvips.Image, **options: object) -> bytes:
    """Encode as PNG, with the metadata of the image; ``options`` go to libvips' PNG writer."""
    gray = from_array(indexed.numbers)
    data = gray.pngsave_buffer(keep="none", filter="none", bitdepth=indexed.bits, **options)
    corner = image.crop(0, 0, 1, 1).pngsave_buffer(keep=keep_profile(image))
    (_, header), *body = _chunks(data)
    colors, alpha = indexed.colors[:, :3], indexed.colors[:, 3]
    transparency = alpha[alpha < 255].tobytes()
    return b"".join(
        (
            png.SIGNATURE,
            make_chunk(b"IHDR", header[:9], bytes((_INDEXED,)), header[10:]),
            *(make_chunk(kind, content) for kind, content in _chunks(corner) if kind not in _PIXELS),
            make_chunk(b"PLTE", colors.tobytes()),
            make_chunk(b"tRNS", transparency) if transparency else b"",
            *(make_chunk(kind, content) for kind, content in body if kind in _PIXELS),
        )
    )


def _number(rgba: Any, most: int) -> Indexed | None:
    import numpy as np

    packed = rgba.view("<u4").reshape(-1)
    if len(np.unique(packed[:: max(1, len(packed) // _SAMPLED_PIXELS)])) > most:
        return None
    colors = np.unique(packed)  # in order of alpha, which is the highest byte
    if len(colors) > most:
        return None
    numbers = np.searchsorted(colors, packed).astype(np.uint8).reshape(rgba.shape[:2])
    return Indexed(colors[:, None].view(np.uint8), numbers)


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


def _chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    reader = HeaderReader(ByteSource(data), "PNG")
    return [(chunk.kind, png.read_content(reader, chunk)) for chunk in png.read_chunks(reader)]
