"""Why each stage of a plan is there, in words for people."""

from __future__ import annotations

from collections.abc import Sequence

from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.codecs.table import FORMATS, Format, by_suffix
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import (
    ApplyFilter,
    Crop,
    Extend,
    Flatten,
    Recolor,
    Resize,
    Sharpen,
    SmartCrop,
    Step,
    ToSrgb,
    Turn,
    Unsharp,
)
from imgsvc_core.spec import Crop as CropSpec
from imgsvc_core.spec import Output, Spec
from imgsvc_core.spec import Resize as ResizeSpec


def of_load(load: LoadSettings, steps: Sequence[Step], sizes: Sequence[Size], *, frames: int) -> str:
    """Why the source is decoded at its scale, and line by line or whole; ``sizes`` are those before steps."""
    reasons = []
    if load.scale != 1:
        place = next(i for i, step in enumerate(steps) if isinstance(step, Resize))
        wanted, size = steps[place], sizes[place]
        assert isinstance(wanted, Resize)
        have = f"{round(size.width * load.scale)} x {round(size.height * load.scale)}"
        reasons.append(f"{have} pixels are enough for {wanted.width} x {wanted.height}")
    if frames > 1 and steps:
        reasons.append("each frame is worked on alone")
    elif load.sequential:
        reasons.append("pixels are needed once, in order")
    else:
        first = next(step for step in steps if step.rereads)
        reasons.append(f"'{first.text}' needs pixels out of order")
    return ", ".join(reasons)


def of_step(step: Step, before: Size, spec: Spec, info: ImageInfo, formats: Sequence[Format]) -> str:
    """Why a step is there; ``before`` is the size before it. Empty where the request says all."""
    match step:
        case Turn(phase="orient"):
            return f"EXIF orientation {info.orientation}"
        case Turn() if info.orientation != 1:
            return f"together with EXIF orientation {info.orientation}, in one move"
        case ToSrgb():
            return "the picture has a profile" if info.profile else f"the picture is {info.colorspace}"
        case Resize(phase="resize") | Extend() if spec.resize:
            return _box(spec.resize)
        case Resize() if spec.scale:
            return f"factor {spec.scale.size:g}"
        case Crop(phase="crop") | SmartCrop(phase="crop") if spec.crop:
            return _region(spec.crop)
        case Crop() | SmartCrop() if spec.resize:
            return (
                f"{before.width} x {before.height} covers the box, gravity {spec.resize.gravity or 'center'}"
            )
        case Recolor():
            return "pointwise steps go together" if len(step.steps) > 1 else ""
        case Sharpen() | Unsharp() | ApplyFilter():
            return "in a pass of its own, as it looks beyond single pixels"
        case Flatten():
            titles = " and ".join(row.title for row in formats if not row.alpha)
            return f"{titles} has no transparency"
    return ""


def of_format(
    output: Output, info: ImageInfo, formats: Sequence[Format], suffix: str, accept: str | None
) -> str:
    """Why the result has its format."""
    if output.format == "auto":
        if accept is not None:
            return "the best of what is accepted"
        return "the smallest suitable" if output.max_bytes is None else "the best suitable"
    if output.format is not None:
        return "as asked for"
    row = by_suffix(suffix)
    if row is not None and row.writable:
        return f"the target ends in {suffix}"
    source = FORMATS.get(info.format)
    if source is not None and formats[0].name == source.name:
        return "the format of the source"
    return f"what {source.title if source else 'a picture in memory'} becomes unless told otherwise"


def _box(resize: ResizeSpec) -> str:
    sides = f"{resize.width or 'any'} x {resize.height or 'any'}"
    meaning = {
        "auto": f"keeps the aspect within {sides}",
        "fit": f"covers {sides}",
        "fill": f"fits inside {sides}",
        "stretch": f"takes on {sides}",
    }
    return f"mode {resize.mode} {meaning[resize.mode]}"


def _region(crop: CropSpec) -> str:
    match crop.mode:
        case "ratio":
            assert crop.ratio is not None
            width, height = crop.ratio
            return f"the largest part of {width:g}:{height:g}, gravity {crop.gravity or 'center'}"
        case "face":
            return "around all faces" if crop.faces == "all" else "around the largest face"
        case "smart":
            return "mode smart"
    return (
        "at the given place"
        if crop.x is not None or crop.y is not None
        else f"gravity {crop.gravity or 'center'}"
    )
