"""Lay a watermark over one frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core._runtime.vipsimage import bands_of, size_of, space_of
from imgsvc_core.pixels import resampling
from imgsvc_core.pixels.blending import flat, over, to_rgb
from imgsvc_core.pixels.channels import ImageFunction, colors_of, is_deep, split_alpha, white
from imgsvc_core.pixels.mixing import mixed
from imgsvc_core.plan import turns
from imgsvc_core.plan.geometry import Area, Box, Size, clipped, rotated
from imgsvc_core.plan.placement import Tiles, watermark_tiles
from imgsvc_core.spec import Color
from imgsvc_core.spec.layers.layer import Mixing

if TYPE_CHECKING:
    from imgsvc_core.spec.thumbor_filters import Blend, Mark

_BLOCKS = 16, 256  # pixels on each side, which stay near the processor


def lay_mark(image: pyvips.Image, mark: Mark, picture: pyvips.Image) -> pyvips.Image:
    """Lay a watermark, whose picture has the right size, over a frame."""
    watermark = mark.watermark
    picture = turned(picture, watermark.rotation)
    across, down = watermark_tiles(size_of(picture), size_of(image), watermark)
    picture = tiled(faded(picture, watermark.fade), across, down, chessboard=watermark.chessboard)
    return lay_over(image, picture, across.start, down.start, watermark.opacity, mark.blend)


def lay_over(
    image: pyvips.Image, mark: pyvips.Image, left: int, top: int, opacity: float = 1.0, blend: Blend = "over"
) -> pyvips.Image:
    """Lay a mark on a picture. The parts of the mark outside of the picture are cut off.

    A colored mark makes a gray picture RGB. Pixels that the mark does not touch stay as they are. Alpha is
    rounded down, as by libvips, so that half alpha on a transparent ground is transparent in GIF.
    """
    image, mark, part = _fitted(image, mark, left, top, opacity)
    if part is None:
        return image
    if blend != "over":
        whole = mark.embed(part.left, part.top, image.width, image.height)
        mode = blend.replace("color", "colour")  # codespell:ignore colour
        return image.composite2(whole, mode).cast(image.format)
    return _with_part(image, part, lambda below: over(mark, below))


def mix_over(
    image: pyvips.Image, mark: pyvips.Image, left: int, top: int, opacity: float, mixing: Mixing
) -> pyvips.Image:
    """Lay a mark on a picture as `lay_over` does, with its colors mixed as CSS mixes them."""
    image, mark, part = _fitted(image, mark, left, top, opacity)
    if part is None:
        return image
    return _with_part(image, part, lambda below: mixed(mark, below, mixing))


def color_over(image: pyvips.Image, alpha: pyvips.Image, color: Color, left: int, top: int) -> pyvips.Image:
    """Lay a color, whose alpha is a band, on a picture, as `lay_over` does."""
    if image.hasalpha() or is_deep(image):
        return mix_over(image, flat(alpha, color), left, top, 1, "normal")
    image = image if color.gray else to_rgb(image)
    part = clipped(Size(*size_of(image)), left, top, *size_of(alpha))
    if part is None:
        return image
    alpha = _cut(alpha, part, left, top)
    bands = bands_of(image)
    pixel = pyvips.Image.new_from_memory(bytes(color.rgb[:bands]), 1, 1, bands, "uchar")
    ground = pixel.embed(0, 0, part.width, part.height, extend="copy")
    return _with_part(image, part, lambda below: alpha.ifthenelse(ground, below, blend=True))


def _with_part(image: pyvips.Image, part: Box, change: ImageFunction) -> pyvips.Image:
    """Return a picture of which a part is changed."""
    if part.size == size_of(image):
        return change(image)
    return image.insert(change(image.crop(*part)), part.left, part.top)


def _fitted(
    image: pyvips.Image, mark: pyvips.Image, left: int, top: int, opacity: float
) -> tuple[pyvips.Image, pyvips.Image, Box | None]:
    """Return a picture and the visible part of a mark, in the same bands, and the place of that part."""
    if colors_of(mark) == 3:
        image = to_rgb(image)
    part = clipped(Size(*size_of(image)), left, top, *size_of(mark))
    if part is None:
        return image, mark, None
    mark = _cut(_like(mark, image), part, left, top)
    if opacity != 1:
        color, alpha = split_alpha(mark)
        assert alpha is not None
        mark = color.bandjoin((alpha * opacity).cast(image.format)).copy(interpretation=image.interpretation)
    return image, mark, part


def _cut(mark: pyvips.Image, part: Box, left: int, top: int) -> pyvips.Image:
    """Return the part of a mark that a picture shows."""
    if part.size == size_of(mark):
        return mark
    return mark.crop(part.left - left, part.top - top, part.width, part.height)


def faded(mark: pyvips.Image, levels: int) -> pyvips.Image:
    """Take levels of 255 off the alpha of a mark."""
    if not levels:
        return mark
    color, alpha = split_alpha(mark if mark.hasalpha() else mark.addalpha())
    assert alpha is not None
    return color.bandjoin((alpha - levels * (white(mark) // 255)).cast(mark.format)).copy(
        interpretation=mark.interpretation
    )


def turned(picture: pyvips.Image, angle: float, inner: Size | None = None) -> pyvips.Image:
    """Turn a picture clockwise, in the smallest frame that holds all of it.

    With an inner frame, its sides are longer by even numbers of pixels, so that both have one center.
    """
    if quarter := turns.of_angle(angle):
        return resampling.turn(picture, quarter)
    size = Size(*size_of(picture))
    frame = rotated(size, angle)
    width, height = (side + (side - own) % 2 for side, own in zip(frame, inner or frame, strict=True))
    return resampling.rotate(picture, angle, None, Area(0, 0, *size), width, height)


def tiled(mark: pyvips.Image, across: Tiles, down: Tiles, *, chessboard: bool = False) -> pyvips.Image:
    """Repeat a mark. The gaps between its tiles are transparent, and so is every other one of a chessboard,
    which keeps the tile in the middle.
    """
    if (across.step, down.step) != (mark.width, mark.height):
        mark = mark if mark.hasalpha() else mark.addalpha()
        mark = mark.embed(across.room, down.room, across.step, down.step)
    if not chessboard:
        return replicated(mark, across.number, down.number)
    mark = mark if mark.hasalpha() else mark.addalpha()
    row = mark.embed(0, 0, 2 * mark.width, mark.height)
    block = row.join(row.wrap(x=mark.width, y=0), "vertical")
    begins_empty = (across.number // 2 + down.number // 2) % 2
    board = replicated(block, across.number // 2 + 1, down.number // 2 + 1)
    return board.crop(begins_empty * mark.width, 0, across.number * mark.width, down.number * mark.height)


def replicated(tile: pyvips.Image, across: int, down: int) -> pyvips.Image:
    """Return copies of a tile in rows. Small ones are copied in blocks: libvips takes long for each copy."""
    width, height = tile.width * across, tile.height * down
    for side in _BLOCKS:
        columns, rows = max(1, min(side, width) // tile.width), max(1, min(side, height) // tile.height)
        if columns * rows > 1:
            tile = in_memory(tile.replicate(columns, rows))
    board = tile.replicate(-(-width // tile.width), -(-height // tile.height))
    return board.crop(0, 0, width, height)


def _like(mark: pyvips.Image, image: pyvips.Image) -> pyvips.Image:
    """Give the mark an alpha band, and the depth and the color bands of the picture."""
    if colors_of(image) == 3:
        mark = to_rgb(mark)
    if not mark.hasalpha():
        mark = mark.addalpha()
    if is_deep(image) and not is_deep(mark):
        mark = (mark * 257).cast("ushort")
    elif is_deep(mark) and not is_deep(image):
        mark = (mark / 257).rint().cast("uchar")
    space = space_of(image)
    return mark if space_of(mark) == space else mark.copy(interpretation=space)
