"""Shrink-on-load: let the decoder reduce the picture, which is faster than any resampler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.table import FORMATS, LoadScaling
from imgsvc_core.plan.geometry import Area, Size
from imgsvc_core.plan.steps import CropBox, PlannedStep, Resample, RotateFreely, SmartCrop, ToSrgb, Turn
from imgsvc_core.spec import Resize

_AT_ANY_SCALE = (Turn, CropBox, RotateFreely, SmartCrop, ToSrgb)
# The least factor of reduction from which a JPEG is decoded at a scale. The resampler does the rest. The more
# it does, the closer the result is to that of all pixels, as `benchmarks.decoding` measures.
_DCT_SCALES = {1 / 8: 9.0, 1 / 4: 5.0, 1 / 2: 3.0}
# By what these factors grow where the color of a JPEG is halved in one direction once more than in the other.
# A decoder at a scale halves the finer direction, too. Results are as near to those of all pixels as others.
_UNEVEN_COLOR = {"4:2:2": 1.6, "4:4:0": 1.6, "4:1:0": 1.6, "4:1:1": 2.56}
# The factor that the scaler of WebP leaves to the resampler, and the least total factor for it.
_SCALER_LEAVES, _SCALER_LEAST = 1.4, 2.0
# The least factor that the smaller copies in JPEG 2000 and TIFF leave to the resampler.
_LEVEL_LEAVES = 1.5
# Pillow's result must equal that of all pixels, so the decoder leaves it a factor larger by this.
_EXTRA = 2.0
# Decoders cut off less than a pixel at the end, which must be a small part of the picture.
_FEWEST_PIXELS = 8
_MOST_REDUCED_IN_ARRAY = 1 << 17  # pixels; from about here on, libvips reduces them as fast
MOST_LAID_IN_ARRAY = 1 << 21  # pixels, with layers on them; libvips takes several threads for more
_LONGEST_REDUCED_IN_ARRAY = 512  # pixels of a side, which bounds the tables of weights


def load_scale(info: ImageInfo, steps: Sequence[PlannedStep], *, all_frames: bool) -> float:
    """Return the scale to decode at: the smallest that looks the same as all pixels, or all pixels."""
    cropped = False
    for planned in steps:
        step, size = planned.step, planned.before
        if isinstance(step, Resample):
            factor = min(size.width / step.size.width, size.height / step.size.height)
            if info.vector and not cropped:
                factor = _factor_to(size, step.size) or factor
            if step.exact and not info.vector:
                return 1.0
            if step.draft:
                return _draft_scale(info, size, step.size)
            if step.pillow and not info.vector:
                scales = _scaling(info) is LoadScaling.DCT
                return scale_for(info, factor / _EXTRA, all_frames=all_frames) if scales else 1.0
            scale = scale_for(info, factor, all_frames=all_frames, libvips=step.libvips is not None)
            least = step.asked.least_scale if isinstance(step.asked, Resize) else None
            return max(scale, least) if least and _scaling(info) is LoadScaling.DCT else scale
        if not isinstance(step, _AT_ANY_SCALE):
            break
        cropped = cropped or isinstance(step, CropBox)
    return 1.0


def text(load: LoadSettings, info: ImageInfo, steps: Sequence[PlannedStep], frames: int) -> str:
    """Describe the decoding of the source."""
    title = FORMATS[info.format].title if info.format in FORMATS else info.format
    shown = f", all {frames} frames" if frames > 1 else ", first frame" if info.animated else ""
    scale = ""
    if load.scale < 1:
        scale = f", decode at 1/{1 / load.scale:.4g} of its size"
    elif load.scale > 1:
        scale = f", render at {load.scale:.4g} times its size"
    if load.array or not load.sequential or (frames > 1 and steps):
        return f"{title}{shown}{scale}, whole in memory"
    # TurboJPEG decodes most JPEGs at once, and libvips the others by lines.
    return f"{title}{shown}{scale}, {'in order' if _scaling(info) is LoadScaling.DCT else 'line by line'}"


def why(load: LoadSettings, steps: Sequence[PlannedStep], frames: int) -> str:
    """Explain the scale of the decoding, and why it is in order or whole."""
    reasons = []
    if load.scale != 1:
        resampled = next(planned for planned in steps if isinstance(planned.step, Resample))
        before, after = resampled.before, resampled.after
        have = f"{round(before.width * load.scale)} x {round(before.height * load.scale)}"
        reasons.append(f"{have} pixels are enough for {after.width} x {after.height}")
    if frames > 1 and steps:
        reasons.append("each frame is worked on alone")
    elif load.array:
        reasons.append("the pixels are few" if steps else "no step changes the pixels")
    elif load.sequential:
        reasons.append("pixels are needed once, in order")
    else:
        first = next(planned.step for planned in steps if planned.traits.rereads)
        reasons.append(f"'{first.text}' needs pixels out of order")
    return ", ".join(reasons)


def scale_for(info: ImageInfo, factor: float, *, all_frames: bool, libvips: bool = False) -> float:
    """Return the scale to decode at for a reduction by a factor.

    With ``libvips`` it is the smallest scale with enough pixels, which servers on libvips choose.
    """
    if info.vector:
        return max(1 / factor, min(1.0, 1 / min(info.width, info.height)))
    offered = _offered(info, factor, all_frames=all_frames, libvips=libvips)
    suitable = [scale for scale, least in offered if least <= factor and _fewest(info) <= scale < 1]
    return min(suitable, default=1.0)


def fits_array(info: ImageInfo, scale: float, steps: Sequence[PlannedStep]) -> bool:
    """Return True if all steps run on few pixels in an array, to the same samples as in libvips."""
    row = FORMATS.get(info.format)
    if row is None or not row.array_pixels:
        return False
    shrink, most = round(1 / scale), row.array_pixels
    if not steps:
        most = max(most, row.unchanged_array_pixels)
    elif not info.alpha and all(planned.traits.in_array for planned in steps):
        most = max(most, min(MOST_LAID_IN_ARRAY, row.unchanged_array_pixels))
    if scale != 1 and row.load_scaling is not LoadScaling.DCT:
        return False
    have = Size(info.width // shrink, info.height // shrink)
    if info.width % shrink or info.height % shrink or have.width * have.height > most:
        return False
    if info.depth != 8 or info.profile or info.colorspace not in ("gray", "srgb") or info.animated:
        return False
    for planned in steps:
        step = planned.step
        if isinstance(step, Resample) and step.is_usual and reduces_in_array(have, step.size):
            have, shrink = step.size, 1
        elif isinstance(step, CropBox) and not any(side % shrink for side in step.box):
            have = Size(step.box.width // shrink, step.box.height // shrink)
        elif not planned.traits.in_array or info.alpha:
            return False
    return True


def reduces_in_array(have: Size, want: Size) -> bool:
    """Return True if a picture becomes smaller, is small enough, and libvips too would take one pass."""
    return (
        have.width >= want.width
        and have.height >= want.height
        and max(have) <= _LONGEST_REDUCED_IN_ARRAY
        and have.width * have.height <= _MOST_REDUCED_IN_ARRAY
    )


def _draft_scale(info: ImageInfo, size: Size, wanted: Size) -> float:
    """Return the smallest scale of a JPEG at which no side becomes smaller than wanted."""
    if _scaling(info) is not LoadScaling.DCT or info.lossless:
        return 1.0
    factor = min(size.width // wanted.width, size.height // wanted.height)
    return min(scale for scale in (1.0, *_DCT_SCALES) if scale == 1 or 1 / scale <= factor)


def loaded_size(info: ImageInfo, scale: float) -> Size:
    """Return the size of a frame that is decoded at a scale."""
    return Size(max(1, round(info.width * scale)), max(1, round(info.height * scale)))


def area_at_hand(info: ImageInfo, scale: float, width: int, height: int) -> Area:
    """Return the area of the source on pixels that were decoded at a scale to a size."""
    left, across = _grid(info, scale, info.width, width)
    top, down = _grid(info, scale, info.height, height)
    return Area(left, top, info.width * across, info.height * down)


def pixels_for(length: float) -> int:
    """Return the whole number of pixels nearest to a length, and of two the lower."""
    return math.ceil(length - 0.5)


def _scaling(info: ImageInfo) -> LoadScaling:
    row = FORMATS.get(info.format)
    return row.load_scaling if row else LoadScaling.NONE


def _fewest(info: ImageInfo) -> float:
    """Return the smallest scale to decode at."""
    return _FEWEST_PIXELS / min(info.width, info.height)


def _offered(
    info: ImageInfo, factor: float, *, all_frames: bool, libvips: bool
) -> Iterable[tuple[float, float]]:
    """Return the scales that the decoder offers, and the least factor of reduction that each suits."""
    match _scaling(info):
        case LoadScaling.DCT if libvips and not info.lossless:
            return [(scale, 1 / scale) for scale in _DCT_SCALES]
        case LoadScaling.CONTINUOUS if libvips and not info.animated and not all_frames:
            return [(max(1 / factor, _fewest(info)), 1.0)]
        case LoadScaling.LEVELS if libvips:
            return ()
        case LoadScaling.DCT if not info.lossless:
            uneven = _UNEVEN_COLOR.get(info.subsample or "", 1)
            return [(scale, least * uneven) for scale, least in _DCT_SCALES.items()]
        case LoadScaling.LEVELS:
            return [(width / info.width, _LEVEL_LEAVES * info.width / width) for width, _ in info.levels]
        case LoadScaling.CONTINUOUS if not info.animated and not all_frames:
            return [(max(_SCALER_LEAVES / factor, _fewest(info)), _SCALER_LEAST)]
        case _:
            return ()


def _grid(info: ImageInfo, scale: float, length: int, have: int) -> tuple[float, float]:
    """Return the start of a side on its decoded pixels, and the number of these for each of its own.

    A decoded pixel covers 2, 4, 8... pixels of the source, and the last one may cover fewer. The pixels of a
    level of JPEG 2000 lie at every second, fourth... pixel, from the first on. WebP and SVG are scaled as a
    whole.
    """
    if scale == 1 or _scaling(info) not in (LoadScaling.DCT, LoadScaling.LEVELS):
        return 0.0, have / length
    scale = 2.0 ** round(math.log2(scale))
    return ((1 - scale) / 2 if FORMATS[info.format].skipping_levels else 0.0), scale


def _factor_to(size: Size, wanted: Size) -> float | None:
    """Return a factor at which both sides are rounded to those wanted, if there is one."""
    sides = list(zip(size, wanted, strict=True))
    smallest = max((want - 0.5) / side for side, want in sides)
    largest = min((want + 0.5) / side for side, want in sides)
    return 2 / (smallest + largest) if smallest < largest else None
