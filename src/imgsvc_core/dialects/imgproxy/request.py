"""What the options of a URL of imgproxy ask of a picture, as a request."""

from __future__ import annotations

from typing import Any

import attrs

from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.dialects.building import (
    Side,
    built,
    cut,
    gravity_of,
    libvips_blur,
    placed_watermark,
    stretched,
)
from imgsvc_core.dialects.imgproxy.geometry import Layout, layout, offset
from imgsvc_core.dialects.imgproxy.options import Gravity, Options, Trim
from imgsvc_core.dialects.imgproxy.pro import Pro
from imgsvc_core.errors import DialectError
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Box, Placement, Size, resized
from imgsvc_core.spec import Filter, Resize, Spec, Watermark
from imgsvc_core.spec.internal import LightnessSharpen, Mosaic

UNPROCESSABLE = 422

_FULL_COLOR_QUALITY = 90  # from which libvips keeps the resolution of color
_LARGEST_SIGMA = 65_535
_SYMMETRIC = {
    (False, False): None, (True, False): "horizontal", (False, True): "vertical", (True, True): "both",
}  # fmt: skip


@attrs.frozen
class Encoding:
    """How results are encoded where the options leave it open.

    Args:
        accepted: formats that the client accepts and that come before all others, the preferred one first.
        preferred: formats that pictures keep; all others become the first one that can carry them.
        qualities: qualities by format.
        quality: the quality of other formats.
    """

    accepted: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ("jpg", "png", "gif")
    qualities: tuple[tuple[str, int], ...] = (("avif", 63), ("webp", 79))
    quality: int = 80


def request_of(
    options: Options, info: ImageInfo, *, watermark: str | None, opacity: float, encoding: Encoding
) -> Spec | None:
    """Return the request, or `None` to deliver the picture's file unchanged.

    Args:
        options: the options of the URL.
        info: the facts of the picture.
        watermark: the id of the watermark, if there is one.
        opacity: the factor of the opacity of all watermarks.
        encoding: how the result is encoded where the options leave it open.

    Raises:
        DialectError: an option asks for something that is not possible; the message names it.
    """
    if _unchanged(options, info):
        return None
    _check_limits(options, info)
    _check_pro(options, info)
    if not options.auto_rotate and info.orientation != 1:
        raise _impossible("auto_rotate", "pictures are always turned upright")
    if options.trim is not None and not info.animated:
        return built(**_trimmed(options, options.trim), output=_output(options, info, encoding))
    turned = Size(*info.upright_size)
    if options.rotate % 180:
        turned = Size(turned.height, turned.width)
    found = layout(options, turned, vector=info.format == "svg")
    horizontal, vertical = options.flip
    mirrored_once = horizontal != vertical
    angle = -options.rotate % 360 if mirrored_once else options.rotate
    return built(
        flip={"horizontal": horizontal, "vertical": vertical} if any(options.flip) else None,
        rotate={"angle": angle} if angle else None,
        **_reduced(options, turned, found),
        filter=_filters(options, found.window.size),
        padding=_padding(options, found),
        watermark=_watermark(options, found, watermark, opacity),
        output=_output(options, info, encoding),
    )


def _unchanged(options: Options, info: ImageInfo) -> bool:
    if not options.raw and not (
        info.format in options.skip_processing and options.format in (None, info.format)
    ):
        return False
    if info.format == "svg":
        name = "raw" if options.raw else "skip_processing"
        raise _impossible(name, "drawings are delivered as pixels only, since they may hold scripts")
    return True


def _check_limits(options: Options, info: ImageInfo) -> None:
    """Raise `DialectError` if the picture exceeds a limit of the URL."""
    pixels, most = info.width * info.height / 1e6, options.max_src_resolution
    of_frame = options.max_animation_frame_resolution
    if info.animated and of_frame:
        if pixels > of_frame:
            raise _impossible("max_animation_frame_resolution", f"a frame has {pixels:.2f} megapixels")
    elif most is not None and pixels * info.frames > most:
        raise _impossible("max_src_resolution", f"the picture has {pixels * info.frames:.2f} megapixels")
    if options.max_src_file_size and info.bytes > options.max_src_file_size:
        raise _impossible("max_src_file_size", f"the file has {info.bytes:,} bytes")
    if options.max_animation_frames is not None and info.frames > options.max_animation_frames:
        raise _impossible("max_animation_frames", "animations keep all frames")


def _check_pro(options: Options, info: ImageInfo) -> None:
    """Raise `DialectError` if an option of Pro cannot be applied to a picture with alpha."""
    pro = options.pro
    if info.alpha and pro.colorize and not pro.colorize_keeps_alpha:
        raise _impossible("colorize", "transparent parts keep their alpha; set the argument keep_alpha")
    if info.alpha and pro.background_alpha < 1 and options.background is not None:
        raise _impossible("background_alpha", "a picture with alpha is laid on opaque colors only")


def _trimmed(options: Options, trim: Trim) -> dict[str, Any]:
    """Return the operations after a trim, which must not depend on the size that it leaves."""
    handled = (
        "trim", "width", "height", "resizing_type", "enlarge", "gravity", "background", "quality",
        "format_quality", "max_bytes", "format", "strip_metadata", "keep_copyright", "auto_rotate",
        "skip_processing", "expires", "filename", "return_attachment",
    )  # fmt: skip
    usual = Options()
    for field in attrs.fields(Options):
        if field.name not in handled and getattr(options, field.name) != getattr(usual, field.name):
            raise _impossible("trim", f"together with '{field.name}' the result depends on what is cut away")
    return {
        "trim": {
            "threshold": min(255.0, trim.threshold),
            "color": trim.color,
            "symmetric": _SYMMETRIC[trim.equal_horizontally, trim.equal_vertically],
        },
        "resize": _resized_after_trim(options),
    }


def _resized_after_trim(options: Options) -> dict[str, Any] | None:
    sides = {"width": options.width or None, "height": options.height or None}
    gravity = options.gravity
    if not (options.width or options.height):
        return None
    match options.resizing_type:
        case "fit":
            return {**sides, "upscale": options.enlarge}
        case "fill" if not all(sides.values()):
            return {**sides, "upscale": options.enlarge}
        case "fill" if gravity.type in ("sm", "fp") or not (0 < abs(gravity.x) < 1 or 0 < abs(gravity.y) < 1):
            return {"mode": "fit", **sides, "upscale": options.enlarge, **_keeping(gravity, Size(1, 1), 1.0)}
        case "force" if options.enlarge and all(sides.values()):
            return {"mode": "stretch", **sides}
    raise _impossible("trim", f"the size of '{options.resizing_type}' depends on what is cut away")


def _reduced(options: Options, turned: Size, found: Layout) -> dict[str, Any]:
    """Return the crop and the resize that leave the window of the scaled picture."""
    crop = _mirrored(found.crop, turned, options.flip)
    crop_gravity = options.crop_gravity or options.gravity
    smart_crop = crop_gravity.type == "sm" and crop.size != turned
    first = {"mode": "smart", "width": crop.width, "height": crop.height} if smart_crop else cut(crop, turned)
    if found.window.size == found.scaled:
        return {"crop": first, "resize": stretched(crop.size, found.scaled)}
    for least in ({}, {"min_width": found.scaled.width, "min_height": found.scaled.height}):
        width, height = found.window.size
        keeping = {**_placed(options, found), **least}
        resize = Resize(mode="fit", width=width, height=height, **keeping)
        if resized(crop.size, resize) == Placement(found.scaled, found.window.size):
            return {"crop": first, "resize": resize}
    if smart_crop:
        raise _impossible("crop", "a smart crop cannot be followed by this kind of resizing")
    part = _unscaled(found, crop)
    second = cut(part, turned)
    if options.gravity.type == "sm":
        if first is not None:
            raise _impossible("gravity", "sm cannot follow a crop with this kind of resizing")
        second = {"mode": "smart", "width": part.width, "height": part.height}
    return {"crop": second, "resize": stretched(part.size, found.window.size)}


def _mirrored(box: Box, size: Size, flip: tuple[bool, bool]) -> Box:
    """Return where a part lies after mirroring: imgproxy crops before it mirrors."""
    horizontal, vertical = flip
    return box._replace(
        left=size.width - box.left - box.width if horizontal else box.left,
        top=size.height - box.top - box.height if vertical else box.top,
    )


def _unscaled(found: Layout, crop: Box) -> Box:
    """Return the part of the picture that becomes the window."""
    across, down = crop.width / found.scaled.width, crop.height / found.scaled.height
    window = found.window
    width = min(crop.width, max(1, round(window.width * across)))
    height = min(crop.height, max(1, round(window.height * down)))
    left = min(round(window.left * across), crop.width - width)
    top = min(round(window.top * down), crop.height - height)
    return Box(crop.left + left, crop.top + top, width, height)


def _sides(gravity: Gravity) -> tuple[Side, Side]:
    across: Side = "near" if "we" in gravity.type else "far" if "ea" in gravity.type else "center"
    down: Side = "near" if "no" in gravity.type else "far" if "so" in gravity.type else "center"
    return across, down


def _placed(options: Options, found: Layout) -> dict[str, Any]:
    """Return the gravity of a resize that keeps exactly the window of the scaled picture."""
    if options.gravity.type == "sm":
        return {"gravity": "smart"}
    left, top = found.window.left, found.window.top
    return {"gravity": "top-left", "offset_x": left or None, "offset_y": top or None}


def _keeping(gravity: Gravity, scaled: Size, dpr: float) -> dict[str, Any]:
    """Return the gravity of a resize that keeps the window of the scaled picture."""
    if gravity.type == "sm":
        return {"gravity": "smart"}
    if gravity.type == "fp":
        return {"gravity": "focus", "focus_x": gravity.x, "focus_y": gravity.y}
    x, y = offset(gravity.x, scaled.width, dpr), offset(gravity.y, scaled.height, dpr)
    return {"gravity": gravity_of(*_sides(gravity)), "offset_x": x or None, "offset_y": y or None}


def _filters(options: Options, size: Size) -> tuple[Filter, ...]:
    return (
        *options.pro.colors_changed.filters,
        libvips_blur(options.blur),
        LightnessSharpen(sigma=min(options.sharpen, _LARGEST_SIGMA)),
        Mosaic(cell=max(1, min(options.pixelate, max(size)))),
    )


def _padding(options: Options, found: Layout) -> dict[str, Any] | None:
    if not any(found.margins):
        return None
    sides = dict(zip(("top", "right", "bottom", "left"), found.margins, strict=True))
    background = options.background
    if background is not None:
        background = attrs.evolve(background, alpha=round(255 * options.pro.background_alpha))
    return {**sides, "background": background}


def _watermark(options: Options, found: Layout, id_: str | None, opacity: float) -> Watermark | None:
    asked = options.watermark
    if id_ is None:
        return None
    canvas, position = found.canvas, asked.position
    x, y = offset(position.x, canvas.width, found.dpr), offset(position.y, canvas.height, found.dpr)
    across, down = _sides(position)
    width, height = options.pro.watermark_width or None, options.pro.watermark_height or None
    if asked.scale:
        width, height = (max(1, round(side * asked.scale)) for side in canvas)
    return placed_watermark(
        id_,
        opacity * asked.opacity,
        ("centered" if position.type == "re" else across, x),
        ("centered" if position.type == "re" else down, y),
        width=width,
        height=height,
        past_center=True,
    )


def _output(options: Options, info: ImageInfo, encoding: Encoding) -> dict[str, Any]:
    format_ = _format(options, info, encoding)
    row = FORMATS[format_]
    metadata = "copyright" if options.keep_copyright else "strip"
    output: dict[str, Any] = {
        "format": format_,
        "metadata": metadata if options.strip_metadata else "keep",
    }
    if row.quality is not None:
        by_format = {**dict(encoding.qualities), **dict(options.format_quality)}
        output["quality"] = options.quality or by_format.get(format_) or encoding.quality
        if options.max_bytes:
            output["max_bytes"] = max(100, options.max_bytes)
    if format_ == "jpg":
        halved = output["quality"] < _FULL_COLOR_QUALITY
        output |= {"encoding": "baseline", "subsampling": "420" if halved else "444"}
    output |= _of_pro(options.pro, format_)
    if options.background is not None and options.pro.background_alpha == 1:
        output |= {"background": options.background, "flatten": row.alpha}
    return output


def _of_pro(pro: Pro, format_: str) -> dict[str, Any]:
    """Return what options of Pro say of the file, which is only what they name."""
    output: dict[str, Any] = {}
    if format_ == "jpg":
        output = {"encoding": "progressive"} if pro.progressive else {}
        output |= {"subsampling": "444"} if pro.full_color else {}
    elif format_ == "png":
        output = {"encoding": "progressive"} if pro.interlaced else {}
        output |= {"colors": pro.colors} if pro.quantized else {}
    elif format_ == "webp" and pro.webp_compression == "lossless":
        output = {"lossless": True}
    elif format_ == "avif" and pro.avif_subsampling != "auto":
        output = {"subsampling": "420" if pro.avif_subsampling == "on" else "444"}
    return output


def _format(options: Options, info: ImageInfo, encoding: Encoding) -> str:
    """Return the format of the result: that of the client, of the URL, of the source, or a common one."""
    if options.format is not None and (options.format not in FORMATS or not FORMATS[options.format].writable):
        raise _impossible("format", f"pictures cannot be written as {options.format}")
    for name in encoding.accepted:
        if FORMATS[name].animation or not info.animated:
            return name
    if options.format is not None:
        return options.format
    source = "png" if info.format == "apng" else info.format
    if source in encoding.preferred:
        return source
    extended = options.extend.enabled or options.extend_aspect_ratio.enabled or any(options.padding)
    transparent = options.background is None and (info.alpha or extended)
    rows = (FORMATS[name] for name in encoding.preferred)
    fitting = (row.name for row in rows if row.alpha or not transparent)
    return next(fitting, encoding.preferred[0])


def _impossible(name: str, why: str) -> DialectError:
    return DialectError(f"Option '{name}' of imgproxy cannot be applied: {why}.", status=UNPROCESSABLE)
