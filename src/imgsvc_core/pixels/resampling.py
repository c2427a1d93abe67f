"""Turning, cropping and resampling of one frame."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import pyvips

from imgsvc_core._runtime.numpy_cost import numpy_pays
from imgsvc_core._runtime.vipsimage import samples_of, size_of
from imgsvc_core.pixels.blending import band_values, fit_for
from imgsvc_core.pixels.channels import resampled_premultiplied, white, with_fields_of
from imgsvc_core.plan.decoding import reduces_in_array
from imgsvc_core.plan.geometry import Area, Box, Size, Stretch, stretch
from imgsvc_core.spec import Color

_TURNS = {
    2: ("fliphor",),
    3: ("rot180",),
    4: ("flipver",),
    5: ("rot90", "fliphor"),
    6: ("rot90",),
    7: ("rot90", "flipver"),
    8: ("rot270",),
}
KERNEL = "lanczos3"
_LOBES = 3  # of the kernel
_MOST_REDUCTION = 1_000_000  # the largest factor of libvips' reduce
_LONGEST = 100_000_000  # pixels of a side of a picture of libvips
_FIRST_FACTOR = 100  # total of two passes, for reductions that libvips cannot do in one
# Shrinking adds up to two factors to a side. At most four millionths of the side are cut off before.
_LONGEST_SHRUNK = _LONGEST - 4 * _FIRST_FACTOR
_LONGEST_SEARCHED = 32 * _MOST_REDUCTION  # the smart crop of libvips looks at a copy of 32 x 32 pixels
# Boxes do the coarse part of a strong reduction. That bounds the lines held in memory, and how many weights
# libvips rounds down: with too many of them, opaque pictures would become translucent.
GAP = 2.0


def turn(image: pyvips.Image, orientation: int) -> pyvips.Image:
    """Mirror and turn by quarters as an EXIF orientation says."""
    for operation in _TURNS.get(orientation, ()):
        image = getattr(image, operation)()
    across, down = image.get("xres"), image.get("yres")
    return image.copy(xres=down, yres=across) if orientation > 4 and across != down else image


def completed(image: pyvips.Image, width: int, height: int) -> pyvips.Image:
    """Restore the last columns and rows that a decoder has cut off, by copies of the last remaining ones."""
    return image.embed(0, 0, width, height, extend="copy")


def rotate(
    image: pyvips.Image, angle: float, background: Color | None, area: Area, width: float, height: float
) -> pyvips.Image:
    """Turn clockwise by any angle about the middle of an area, which becomes the middle of a new frame."""
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    image = fit_for(image, background)
    options: dict[str, Any] = {
        "interpolate": pyvips.Interpolate.new("bicubic"),
        "idx": -(area.left + (area.width - 1) / 2),
        "idy": -(area.top + (area.height - 1) / 2),
        "odx": (width - 1) / 2,
        "ody": (height - 1) / 2,
        "oarea": [0, 0, math.ceil(width), math.ceil(height)],
        "background": _premultiplied(image, background),
        "premultiplied": True,  # libvips itself would round colors down
    }
    matrix = [cosine, -sine, sine, cosine]
    return resampled_premultiplied(image, lambda picture: picture.affine(matrix, **options), exact=True)


def _premultiplied(image: pyvips.Image, background: Color | None) -> list[float]:
    """Return a color for libvips' affine, which does not multiply its background by alpha."""
    values = band_values(image, background)
    if not image.hasalpha():
        return [float(value) for value in values]
    *color, alpha = values
    return [*(value * alpha / white(image) for value in color), alpha]


def resample(
    image: pyvips.Image, have: Size, width: int, height: int, area: Area, *, exact: bool = False
) -> pyvips.Image:
    """Resample an area of a picture, which has ``have`` pixels, to a size.

    ``exact`` takes several times as long: its weights are not rounded, and edges not repeated.
    """
    operation = partial(_resample, have=have, width=width, height=height, area=area, exact=exact)
    return resampled_premultiplied(image, operation, exact=exact)


def reduce_in_array(image: pyvips.Image, have: Size, want: Size) -> pyvips.Image | None:
    """Reduce few pixels of 8 bits as `resample` does. Return None for others, or if NumPy does not pay."""
    if not reduces_in_array(have, want) or samples_of(image) != "uchar":
        return None
    if not numpy_pays(have.width * have.height):
        return None
    from imgsvc_core.pixels.reduction import reduced

    return reduced(image, want)


def resample_by_libvips(
    image: pyvips.Image, across: float, down: float, size: Size, kernel: str | None = None
) -> pyvips.Image | None:
    """Resample a picture by factors as servers on libvips do. Return None if that gives another size."""
    across = 1.0 if image.width == size.width else across
    down = 1.0 if image.height == size.height else down
    kernel = kernel or KERNEL
    resized = resampled_premultiplied(image, lambda part: part.resize(across, vscale=down, kernel=kernel))
    return resized if size_of(resized) == size else None


def resample_by_pillow(image: pyvips.Image, width: int, height: int, area: Area) -> pyvips.Image:
    """Resample an area of a picture of 8 bits to a size, in memory and to the same pixels as Pillow."""
    import numpy as np
    from PIL import Image

    pixels = image.numpy().reshape(image.height, image.width, image.bands)
    mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA" if image.hasalpha() else "CMYK"}[image.bands]
    picture = Image.frombytes(mode, (image.width, image.height), pixels.tobytes())
    box = area.left, area.top, area.left + area.width, area.top + area.height
    resized = np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS, box))
    resized = resized.reshape(height, width, image.bands)
    return with_fields_of(image, pyvips.Image.new_from_array(resized, interpretation=image.interpretation))


def reduces_at_once(have: Size, want: Size) -> bool:
    """Return True if no side grows, and libvips reduces each of them in one pass."""
    factors = have.width / want.width, have.height / want.height
    return min(factors) >= 1 and all(map(_at_once, have, factors))


def smart_box(image: pyvips.Image, width: int, height: int) -> tuple[int, int]:
    """Return left and top of the most interesting region of a size."""
    across, down = (math.ceil(side / _LONGEST_SEARCHED) for side in size_of(image))
    searched = image.subsample(across, down) if max(across, down) > 1 else image
    _, found = searched.smartcrop(
        max(1, min(width, image.width) // across),
        max(1, min(height, image.height) // down),
        interesting="attention",
        attention_x=True,
        attention_y=True,
    )
    left = round(found["attention_x"] * across - width / 2)
    top = round(found["attention_y"] * down - height / 2)
    return max(0, min(left, image.width - width)), max(0, min(top, image.height - height))


def _resample(
    image: pyvips.Image, *, have: Size, width: int, height: int, area: Area, exact: bool
) -> pyvips.Image:
    across, down = stretch(area.left, area.width, width), stretch(area.top, area.height, height)
    if across.made > width and down.factor > 1:
        # libvips keeps whole lines of a file in memory, so they become fewer before they become longer.
        lines = Area(0, area.top, have.width, area.height)
        image = _resample(image, have=have, width=have.width, height=height, area=lines, exact=exact)
        have, down = Size(have.width, height), Stretch(0, height, 1.0, height)
    image = _part(image, have, Box(across.first, down.first, across.taken, down.taken))
    if across.factor > 1 or down.factor > 1:
        taken = Size(across.taken, down.taken)
        image = _reduce(image, taken, max(1.0, across.factor), max(1.0, down.factor), exact=exact)
        kept = (width if across.factor > 1 else across.made), (height if down.factor > 1 else down.made)
        image = _part(image, Size(across.made, down.made), Box(across.skipped, down.skipped, *kept))
    return _enlarge(image, width, height) if across.factor < 1 or down.factor < 1 else image


def _part(image: pyvips.Image, have: Size, box: Box) -> pyvips.Image:
    """Return a rectangle of a picture. Pixels beyond the edges are copies of the edges."""
    if box == (0, 0, *have):
        return image
    if Box(0, 0, *have).holds(box):
        return image.crop(*box)
    return image.embed(-box.left, -box.top, *box.size, extend="copy")


def _reduce(image: pyvips.Image, have: Size, across: float, down: float, *, exact: bool) -> pyvips.Image:
    once = _at_once(have[0], across), _at_once(have[1], down)
    if not all(once) or max(have) > _LONGEST_SHRUNK:
        first = [1 if at_once else _FIRST_FACTOR for at_once in once]
        width, height = image.width / across, image.height / down
        image = image.crop(0, 0, *(min(side, _LONGEST_SHRUNK) for side in have)).shrink(*first)
        across, down = image.width / width, image.height / height
    if not exact:
        return pyvips.Operation.call("reduce", image, across, down, kernel=KERNEL, gap=GAP)
    reduced = _reduce_exactly(_reduce_exactly(image.cast("float"), "reducev", down), "reduceh", across)
    return reduced if image.format in ("float", "double") else reduced.rint().cast(image.format)


def _reduce_exactly(image: pyvips.Image, operation: str, factor: float) -> pyvips.Image:
    """Reduce one axis of floats by the pixels inside alone, where libvips weighs copies of the edge too."""
    if factor == 1:
        return image
    down = operation == "reducev"
    have = image.height if down else image.width
    made = math.floor(have / factor + 0.5)  # as libvips counts
    margin, border = next(
        (margin, border)
        for margin in itertools.count(_LOBES + 1)
        if math.floor((have + 2 * (border := round(margin * factor))) / factor + 0.5) == made + 2 * margin
    )

    def sums(inside: pyvips.Image) -> pyvips.Image:
        if down:
            framed = inside.embed(0, border, inside.width, have + 2 * border)
            return framed.reducev(factor, kernel=KERNEL, gap=0).crop(0, margin, inside.width, made)
        framed = inside.embed(border, 0, have + 2 * border, inside.height)
        return framed.reduceh(factor, kernel=KERNEL, gap=0).crop(margin, 0, made, inside.height)

    ones = pyvips.Image.black(1 if down else have, have if down else 1) + 1
    weights = sums(ones).copy_memory()
    return sums(image) / (weights.zoom(image.width, 1) if down else weights.zoom(1, image.height))


def _at_once(side: int, factor: float) -> bool:
    """Return True if libvips can reduce a side in one pass, or if two passes would take much longer."""
    return factor <= 2 * _FIRST_FACTOR or (factor <= _MOST_REDUCTION and side + 2 * factor <= _LONGEST)


def _enlarge(image: pyvips.Image, width: int, height: int) -> pyvips.Image:
    """Enlarge by interpolation about the middles of pixels; libvips' ``resize`` shifts by half a pixel."""
    return image.affine(
        [width / image.width, 0, 0, height / image.height],
        interpolate=pyvips.Interpolate.new("bicubic"),
        idx=0.5,
        idy=0.5,
        odx=-0.5,
        ody=-0.5,
        oarea=[0, 0, width, height],
        extend="copy",
        premultiplied=True,
    )
