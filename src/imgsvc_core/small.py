"""Small PNGs that are only cropped and made smaller: the same bytes as by libvips, in a third of the time.

libvips takes a millisecond and more to set up its operations and its threads, however few the pixels are.
"""

from __future__ import annotations

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.readers import small_png as reader
from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import codec_effort
from imgsvc_core.codecs.writers import Encoded
from imgsvc_core.codecs.writers import small_png as writer
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan import Plan
from imgsvc_core.plan.steps import CropBox, PlannedStep, Resample

_MOST_PIXELS = 1 << 16  # of a source; more of them take libvips no longer


def encode_at_once(source: ByteSource, plan: Plan) -> Encoded | None:
    """Return the result of a plan, or None if it needs libvips."""
    width, height = plan.size
    if width * height > writer.MOST_PIXELS or not (
        _is_plain(plan.info) and all(map(_is_plainly_asked, plan.save)) and all(map(_is_quick, plan.steps))
    ):
        return None
    found = reader.read(source)
    if found is None:
        return None
    from imgsvc_core.pixels import reduction  # it takes NumPy to load, so some time

    pixels = found.pixels
    for planned in plan.steps:
        if isinstance(planned.step, CropBox):
            left, top, width, height = planned.step.box
            pixels = pixels[top : top + height, left : left + width]
        else:
            pixels = reduction.reduce(pixels, planned.after, alpha=plan.info.alpha)
    level = codec_effort("png", plan.save[0].effort)
    assert isinstance(level, int)
    data = writer.encode(pixels, found.resolution, level)
    return Encoded("png", data, len(data), None)


def _is_plain(info: ImageInfo) -> bool:
    return (
        info.format == "png"
        and info.width * info.height <= _MOST_PIXELS
        and info.depth == 8
        and info.colorspace in ("gray", "srgb")
        and not (info.interlaced or info.profile)
    )


def _is_plainly_asked(settings: SaveSettings) -> bool:
    return (
        settings.format == "png"
        and settings.metadata == "strip"
        and settings.colors is None
        and settings.max_bytes is None
        and not (settings.progressive or settings.indexed)
    )


def _is_quick(planned: PlannedStep) -> bool:
    if isinstance(planned.step, Resample):
        from imgsvc_core.pixels import reduction

        return reduction.suits(planned.before, planned.after)
    return isinstance(planned.step, CropBox)
