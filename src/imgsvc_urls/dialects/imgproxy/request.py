"""What the options of a URL of imgproxy ask of a picture, as a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Background, Filter, Spec, Trim, Watermark
from imgsvc_core.spec.internal import LightnessSharpen, Mosaic
from imgsvc_core.spec.thumbor_filters import Ground, Rescale
from imgsvc_urls.dialects.building import (
    animates,
    built,
    cut,
    libvips_blur,
    lower_qualities,
    placed_watermark,
    resized_to,
)
from imgsvc_urls.dialects.imgproxy.geometry import Layout, fitted, layout, offset, sides
from imgsvc_urls.dialects.imgproxy.options import Options
from imgsvc_urls.dialects.imgproxy.pro import Pro
from imgsvc_urls.errors import DialectError

UNPROCESSABLE = 422

_FULL_COLOR_QUALITY = 90  # from which libvips keeps the resolution of color
_LARGEST_SIGMA = 65_535
_LEAST_AVIF = 16  # pixels; smaller pictures get another format
_FASTEST_AVIF = 9
_GIF_EFFORT = _WEBP_EFFORT = 6
_FITTED = ("webp", "avif", "heic", "gif", "ico")  # formats whose results are made smaller until they fit
_SYMMETRIC: Mapping[tuple[bool, ...], Literal["horizontal", "vertical", "both"] | None] = {
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
        avif_speed: the speed of the encoder of AVIF, from 0 to 9.
    """

    accepted: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ("jpg", "png", "gif")
    qualities: tuple[tuple[str, int], ...] = (("avif", 63), ("webp", 79))
    quality: int = 80
    avif_speed: int = 8


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
    _check_picture(options, info)
    found = layout(options, info)
    size = _fitted(found, _format(options, info, encoding))
    changes = _filters(options, found.window.size)
    padding = _padding(options, found)
    if size != found.canvas:
        changes, padding = (*changes, *_shrunk(found, padding, size)), None
    horizontal, vertical = options.flip
    mirrored_once = horizontal != vertical
    angle = -options.rotate % 360 if mirrored_once else options.rotate
    return built(
        orient={"cmyk": "libvips"} if info.colorspace == "cmyk" else None,
        flip={"horizontal": horizontal, "vertical": vertical} if any(options.flip) else None,
        rotate={"angle": angle} if angle else None,
        **_reduced(options, found),
        filter=changes,
        padding=padding,
        background=_background(options),
        watermark=_watermark(options, size, found.dpr, watermark, opacity),
        output=_output(options, info, size, encoding),
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


def _check_picture(options: Options, info: ImageInfo) -> None:
    """Raise `DialectError` if the picture exceeds a limit of the URL."""
    pixels, most = info.width * info.height / 1e6, options.max_src_resolution
    of_frame = options.max_animation_frame_resolution
    frames = min(info.frames, options.max_animation_frames or info.frames)
    if frames > 1 and of_frame:
        if pixels > of_frame:
            raise _impossible("max_animation_frame_resolution", f"a frame has {pixels:.2f} megapixels")
    elif most is not None and pixels * frames > most:
        raise _impossible("max_src_resolution", f"the picture has {pixels * frames:.2f} megapixels")
    if options.max_src_file_size and info.bytes > options.max_src_file_size:
        raise _impossible("max_src_file_size", f"the file has {info.bytes:,} bytes")


def trim_of(options: Options, info: ImageInfo, encoding: Encoding) -> Trim | None:
    """Return what is cut away before all else. imgproxy trims no animations, and looks before it turns."""
    asked = options.trim
    if asked.threshold is None or _unchanged(options, info):
        return None
    if _moves(options, info) and animates(_format(options, info, encoding)):
        return None
    equally = asked.equal_horizontally, asked.equal_vertically
    symmetric = _SYMMETRIC[equally[::-1] if info.orientation >= 5 else equally]
    return Trim(threshold=min(255.0, asked.threshold), color=asked.color, symmetric=symmetric, libvips=True)


def _reduced(options: Options, found: Layout) -> dict[str, Any]:
    """Return the crop and the resize that leave the window of the scaled picture."""
    crop, scaled, window = found.crop, found.scaled, found.window
    gravity = options.crop_gravity or options.gravity
    smart = gravity.type == "sm" and crop.size != found.size
    first = cut(crop, found.size)
    if smart:
        first = {"mode": "smart", "width": crop.width, "height": crop.height, "stored": True}
    at = None if options.gravity.type == "sm" else (window.left, window.top)
    return {
        "crop": first,
        "resize": resized_to(crop.size, scaled, kept=window.size, at=at, factors=found.factors),
    }


def _filters(options: Options, size: Size) -> tuple[Filter, ...]:
    return (
        *options.pro.filters,
        libvips_blur(options.blur),
        LightnessSharpen(sigma=min(options.sharpen, _LARGEST_SIGMA)),
        Mosaic(cell=max(1, min(options.pixelate, max(size)))),
    )


def _padding(options: Options, found: Layout) -> dict[str, Any] | None:
    if not any(found.margins):
        return None
    sides = dict(zip(("top", "right", "bottom", "left"), found.margins, strict=True))
    return {**sides, "background": options.background if options.pro.background_alpha == 1 else None}


def _background(options: Options) -> Background | None:
    """Return a translucent color below the picture and its padding. An opaque one is that of the output."""
    opacity, color = options.pro.background_alpha, options.background
    if color is None or opacity == 1:
        return None
    return Background(color=attrs.evolve(color, alpha=round(255 * opacity)))


def _fitted(found: Layout, format_: str) -> Size:
    """Return the size of the result, which its format may limit."""
    return fitted(found.canvas, FORMATS[format_].max_side) if format_ in _FITTED else found.canvas


def _shrunk(found: Layout, padding: dict[str, Any] | None, size: Size) -> Iterator[Filter]:
    """Return what pads the picture and scales the whole to a size, as a watermark comes after that."""
    if padding is not None:
        (width, height), background = found.canvas, padding["background"]
        yield Ground(width=width, height=height, left=padding["left"], top=padding["top"], color=background)
    yield Rescale(width=size.width, height=size.height)


def _watermark(
    options: Options, canvas: Size, dpr: float, id_: str | None, opacity: float
) -> Watermark | None:
    asked = options.watermark
    if id_ is None:
        return None
    position = asked.position
    x, y = offset(position.x, canvas.width, dpr), offset(position.y, canvas.height, dpr)
    across, down = sides(position)
    width, height = options.pro.watermark_width or None, options.pro.watermark_height or None
    if asked.scale:
        width, height = (max(1, round(side * asked.scale)) for side in canvas)
    tiled = position.type in ("re", "ch")
    return placed_watermark(
        id_,
        opacity * asked.opacity,
        ("centered" if tiled else across, x),
        ("centered" if tiled else down, y),
        width=width,
        height=height,
        past_center=True,
        chessboard=position.type == "ch",
        rotation=options.pro.watermark_angle,
    )


def _output(options: Options, info: ImageInfo, size: Size, encoding: Encoding) -> dict[str, Any]:
    format_ = _format(options, info, encoding)
    if format_ == "avif" and min(size) < _LEAST_AVIF:
        format_ = "png" if _transparent(options, info) else "jpg"
    row = FORMATS[format_]
    metadata = "copyright" if options.keep_copyright else "strip"
    output: dict[str, Any] = {
        "format" if row.writable else "internal_format": format_,
        "metadata": metadata if options.strip_metadata else "keep",
        "frames": 1 if info.animated and not animates(format_) else options.max_animation_frames or None,
        "depth": 8 if info.depth > 8 and not options.preserve_hdr else None,
    }
    if row.quality is not None:
        by_format = {**dict(encoding.qualities), **dict(options.format_quality)}
        output["quality"] = options.quality or by_format.get(format_) or encoding.quality
        if options.max_bytes:
            output["max_bytes"] = max(100, options.max_bytes)
            output["ladder"] = (output["quality"], *lower_qualities(output["quality"]))
    if format_ in ("jpg", "avif"):
        halved = output["quality"] < _FULL_COLOR_QUALITY
        output["subsampling"] = "420" if halved else "444"
        output |= (
            {"encoding": "baseline"} if format_ == "jpg" else {"effort": _avif_effort(encoding.avif_speed)}
        )
    elif format_ == "webp":
        # without the sharp edges that it can have in color
        output |= {"subsampling": "420", "effort": _WEBP_EFFORT}
    elif format_ == "gif":
        output |= {"palettes": "libvips", "effort": _GIF_EFFORT}
    output |= _of_pro(options.pro, format_)
    if options.background is not None and options.pro.background_alpha == 1:
        output |= {"background": options.background, "flatten": row.alpha}
    return output


def _avif_effort(speed: int) -> int:
    """Return the effort at which AVIF is encoded with a speed, or with the slowest one that pays."""
    effort = FORMATS["avif"].effort
    assert effort is not None
    scale = [int(step) for step in effort.scale]
    return scale.index(min(_FASTEST_AVIF - speed, scale[-1]))


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
        output = {"lossless": True, "subsampling": None}
    elif format_ == "avif" and pro.avif_subsampling != "auto":
        output = {"subsampling": "420" if pro.avif_subsampling == "on" else "444"}
    return output


def _format(options: Options, info: ImageInfo, encoding: Encoding) -> str:
    """Return the format of the result: that of the client, of the URL, of the source, or a common one."""
    if options.format is not None and FORMATS.get(options.format, FORMATS["svg"]).writer is None:
        raise _impossible("format", f"pictures cannot be written as {options.format}")
    moves = _moves(options, info)
    for name in encoding.accepted:
        if animates(name) or not moves:
            return name
    if options.format is not None:
        return options.format
    source = "png" if info.format == "apng" else info.format
    if source in encoding.preferred:
        return source
    transparent = _transparent(options, info)
    rows = (FORMATS[name] for name in encoding.preferred)
    fitting = (row.name for row in rows if row.alpha >= transparent and animates(row.name) >= moves)
    return next(fitting, encoding.preferred[0])


def _moves(options: Options, info: ImageInfo) -> bool:
    """Return True if all frames of an animation are wanted."""
    return info.animated and options.max_animation_frames != 1


def _transparent(options: Options, info: ImageInfo) -> bool:
    """Return True if the result may be transparent."""
    return options.background is None and (info.alpha or options.extend.enabled or any(options.padding))


def _impossible(name: str, why: str) -> DialectError:
    return DialectError(f"Option '{name}' of imgproxy cannot be applied: {why}.", status=UNPROCESSABLE)
