"""Small pictures that are only cropped and made smaller: the same bytes as by libvips, in less time.

libvips takes a millisecond and more to set up its operations and its threads, however few the pixels are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from imgsvc_core._runtime.libvips import check_not_forked
from imgsvc_core._runtime.vipsimage import limit_threads
from imgsvc_core.formats.format import Format, SavedFacts
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.jpeg import Jpeg
from imgsvc_core.formats.png import Png
from imgsvc_core.formats.png import small_writing as png_writer
from imgsvc_core.formats.saving import Encoded, save
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.table import FORMATS, codec_effort
from imgsvc_core.plan import Plan
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.steps import CropBox, Resample

_MOST_PNG_PIXELS = 1 << 16  # pixels of a source; libvips is as fast with more of them
_MOST_JPEG_PIXELS = 1 << 17  # pixels that it is decoded to


def encode_at_once(source: Format, plan: Plan, threads: int | None = None) -> Encoded | None:
    """Return the result of a plan, or None if libvips must do all of it.

    Raises:
        CorruptImage: the source is a damaged JPEG.
        ForkedProcess: libvips is to encode, and does not work in this process.
    """
    info, settings = plan.info, plan.save[0]
    make = _MAKERS.get((info.format, settings.format))
    if (
        make is None
        or len(plan.save) > 1
        or plan.save_exactly
        or info.depth != 8
        or info.profile
        or not _is_plain(settings)
    ):
        return None
    return make(source, plan, threads)


def _png(source: Format, plan: Plan, threads: int | None) -> Encoded | None:
    from imgsvc_core.formats.png import small_reading as small_png

    info, steps = plan.info, _quick_steps(plan, 1)
    if (
        steps is None
        or plan.size.width * plan.size.height > png_writer.MOST_PIXELS
        or info.width * info.height > _MOST_PNG_PIXELS
        or info.colorspace not in ("gray", "srgb")
        or info.interlaced
    ):
        return None
    assert isinstance(source, Png)
    found = small_png.read(source)
    if found is None:
        return None
    level = codec_effort("png", plan.save[0].effort)
    assert isinstance(level, int)
    pixels = _pixels(found.pixels, steps, alpha=info.alpha)
    data, facts = png_writer.encode(pixels, found.resolution, level)
    return _encoded("png", data, pixels, facts)


def _jpeg(source: Format, plan: Plan, threads: int | None) -> Encoded | None:
    from imgsvc_core.formats.jpeg.reading import plain_image

    assert isinstance(source, Jpeg)
    density = source.header.density
    pixels = None if density is None else _pixels_of_jpeg(source, plan)
    if density is None or pixels is None:
        return None
    check_not_forked()
    image = plain_image(pixels, density)
    limit_threads(image, threads)
    return save(image, plan.save[0])


def _webp_of_jpeg(source: Format, plan: Plan, threads: int | None) -> Encoded | None:
    from imgsvc_core.formats.content import given_subsampling
    from imgsvc_core.formats.webp import writing as webp

    settings = plan.save[0]
    settings = attrs.evolve(settings, quality=settings.quality or FORMATS["webp"].quality)
    pixels = _pixels_of_jpeg(source, plan) if given_subsampling(3, settings) == "420" else None
    if pixels is None:
        return None
    data = webp.encode(pixels, settings)
    return _encoded("webp", data, pixels, {"subsample": "4:2:0"}, settings.quality)


def _encoded(format: str, data: bytes, pixels: Any, facts: SavedFacts, quality: int | None = None) -> Encoded:
    height, width, bands = pixels.shape
    usual: SavedFacts = {"width": width, "height": height, "colorspace": "srgb", "alpha": bands in (2, 4)}
    usual |= facts
    return Encoded(ImageInfo(format=format, bytes=len(data), quality=quality, **usual), data)


_MAKERS: dict[tuple[str, str], Callable[[Format, Plan, int | None], Encoded | None]] = {
    ("png", "png"): _png,
    ("jpg", "jpg"): _jpeg,
    ("jpg", "png"): _jpeg,
    ("jpg", "webp"): _webp_of_jpeg,
}


def _pixels_of_jpeg(source: Format, plan: Plan) -> Any | None:
    """Return an array of (height, width, 3) of a plan on a JPEG."""
    from imgsvc_core.formats.jpeg import turbojpeg

    info, shrink = plan.info, round(1 / plan.load.scale)
    steps = _quick_steps(plan, shrink)
    if (
        steps is None
        or info.colorspace != "srgb"
        or info.width * info.height > shrink**2 * _MOST_JPEG_PIXELS
        or info.width % shrink
        or info.height % shrink
    ):
        return None
    assert isinstance(source, Jpeg)
    pixels = turbojpeg.read_plain(source, shrink)
    return None if pixels is None else _pixels(pixels, steps, alpha=False)


def _is_plain(settings: SaveSettings) -> bool:
    return (
        settings.metadata == "strip"
        and settings.colors is None
        and settings.max_bytes is None
        and not settings.progressive
    )


def _quick_steps(plan: Plan, shrink: int) -> list[Box | Size] | None:
    """Return the part to keep and the sizes to reduce to, on pixels that a decoder has scaled down.

    Return None for other steps, and for boxes that end within pixels.
    """
    from imgsvc_core.pixels import reduction  # needs NumPy, which takes time to load

    have = Size(plan.info.width // shrink, plan.info.height // shrink)
    quick: list[Box | Size] = []
    for planned in plan.steps:
        step = planned.step
        if isinstance(step, Resample) and step.is_usual and reduction.suits(have, step.size):
            quick.append(step.size)
            have, shrink = step.size, 1
        elif isinstance(step, CropBox) and not any(side % shrink for side in step.box):
            box = Box(*(side // shrink for side in step.box))
            quick.append(box)
            have = box.size
        else:
            return None
    return quick


def _pixels(pixels: Any, steps: Sequence[Box | Size], *, alpha: bool) -> Any:
    """Run steps on an array of (height, width, bands)."""
    from imgsvc_core.pixels import reduction

    for step in steps:
        if isinstance(step, Box):
            pixels = pixels[step.top : step.top + step.height, step.left : step.left + step.width]
        elif step != (pixels.shape[1], pixels.shape[0]):
            pixels = reduction.reduce(pixels, step, alpha=alpha)
    return pixels
