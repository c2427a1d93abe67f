"""What the modifiers of a URL of ipx ask of a picture, as a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Color, Filter, Spec, Trim
from imgsvc_core.spec import vips_filters as vips_specs
from imgsvc_core.spec.color import BLACK
from imgsvc_core.spec.geometry import Gravity
from imgsvc_core.spec.internal import LightnessSharpen
from imgsvc_core.spec.thumbor_filters import Convolution, Ground, Tones
from imgsvc_urls.dialects.building import animates, built, libvips_blur, window_of
from imgsvc_urls.dialects.ipx.modifiers import ALIASES, Modifier
from imgsvc_urls.dialects.ipx.sharp import Layout, called, layout
from imgsvc_urls.dialects.reading import preferred_format
from imgsvc_urls.errors import DialectError

_FORMATS = {
    "jpeg": "jpg", "jpg": "jpg", "png": "png", "webp": "webp", "avif": "avif", "tiff": "tiff", "heif": "heic",
    "gif": "gif", "heic": "heic",
}  # fmt: skip
_AUTO = ("avif", "webp", "jpeg", "png", "tiff", "heif", "gif", "jpeg")
_AUTO_ANIMATED = ("webp", "gif")
_QUALITIES = {"avif": 50, "heic": 50}
_QUALITY = 80
_MORPHOLOGIES: tuple[Literal["dilate", "erode"], ...] = ("dilate", "erode")
_TRIMMED = 10.0
_MOST_COLORS = 256  # of a PNG with a quality
_MILD_BLUR = (1 / 9,) * 9
_MILD_SHARPEN = tuple(weight / 24 for weight in (-1, -1, -1, -1, 32, -1, -1, -1, -1))
_ACROSS, _DOWN = {"horizontal": True}, {"vertical": True}
_ORIENTED: Mapping[int, tuple[dict[str, bool] | None, int]] = {
    1: (None, 0), 2: (_ACROSS, 0), 3: (None, 180), 4: (_DOWN, 0), 5: (_ACROSS, 270), 6: (None, 90),
    7: (_ACROSS, 90), 8: (None, 270),
}  # fmt: skip
"""Each EXIF orientation as a flip, and a clockwise rotation after it."""


def accepted_format(accept: str, *, animated: bool) -> str:
    """Return the format that ``format_auto`` stands for: what a client wants most, of those that it names."""
    names = _AUTO_ANIMATED if animated else _AUTO
    return preferred_format(accept, names) or names[-1]


def is_upright(modifiers: Sequence[Modifier]) -> bool:
    """Return True if modifiers turn a picture by its EXIF orientation."""
    return any(name == "autoorient" or (name == "rotate" and angle[0] is None) for name, angle in modifiers)


def trim_of(modifiers: Sequence[Modifier]) -> Trim | None:
    """Return what modifiers cut away before all else."""
    for name, arguments in modifiers:
        if name == "trim":
            return Trim(threshold=min(255.0, _first(arguments, _TRIMMED)), libvips=True)
    return None


def request_of(modifiers: Sequence[Modifier], format_: str | None, info: ImageInfo) -> Spec:
    """Return the request.

    Args:
        modifiers: the modifiers of the URL, in the order of ipx.
        format_: the format that the URL or the client asks for, as ipx names it.
        info: the facts of the picture.

    Raises:
        DialectError: a modifier asks for something that is not possible; the message names it.
    """
    asked = {ALIASES.get(name, name): arguments for name, arguments in modifiers}
    calls = called(modifiers, Size(*info.upright_size))
    found = layout(calls, jpeg=info.format == "jpg", gamma="gamma" in asked)
    background = asked.get("background", (None,))[0] or BLACK
    flip, quarters = _ORIENTED[found.orientation]
    angle = (quarters + found.angle) % 360
    output = _output(asked, format_, info)
    gravity: Gravity | None = "smart" if calls.position == "smart" else None
    reduced = window_of(found.whole, found.part, found.scaled, found.window, gravity)
    if reduced["resize"] is not None:
        exact = found.exact or calls.kernel is not None
        reduced["resize"] |= {"kernel": calls.kernel, "scaling": "exact" if exact else "fast"}
    return built(
        flip=flip,
        rotate={"angle": angle, "background": background if found.angle else None} if angle else None,
        adjust={"opacity": asked["opacity"][0]} if "opacity" in asked and "background" not in asked else None,
        **reduced,
        filter=(
            *_grounds(asked, found, calls.background or BLACK, background),
            *_filters(asked, found.canvas),
        ),
        output=output,
    )


def _grounds(
    asked: Mapping[str, tuple[Any, ...]], found: Layout, of_canvas: Color, background: Color
) -> tuple[Filter, ...]:
    """Return what lies under and around the picture."""
    grounds = []
    if "flatten" in asked:
        grounds.append(_ground(found.window.size, (0, 0), background, under=True))
    if found.canvas != found.window.size:
        grounds.append(_ground(found.canvas, (found.left, found.top), of_canvas))
    top, right, bottom, left = found.margins
    if any(found.margins):
        size = Size(found.canvas.width + left + right, found.canvas.height + top + bottom)
        kind = asked["extend"][4] or "background"
        grounds.append(_ground(size, (left, top), background, kind="color" if kind == "background" else kind))
    return tuple(grounds)


def _ground(
    size: Size, at: tuple[int, int], color: Color, *, under: bool = False, kind: Any = "color"
) -> Ground:
    (width, height), (left, top) = size, at
    return Ground(width=width, height=height, left=left, top=top, kind=kind, color=color, under=under)


def _filters(asked: Mapping[str, tuple[Any, ...]], size: Size) -> tuple[Filter, ...]:
    """Return the filters in the order of sharp."""
    filters: list[Filter] = []
    if "grayscale" in asked:
        filters.append(vips_specs.Modulate(saturation=0))
    if "median" in asked:
        filters.append(vips_specs.Median(size=_first(asked["median"], 3)))
    if "threshold" in asked:
        level, gray = asked["threshold"]
        filters.append(vips_specs.Threshold(level=128 if level is None else level, gray=gray is not False))
    filters.extend(
        vips_specs.Morphology(mode=mode, width=_first(asked[mode], 1))
        for mode in _MORPHOLOGIES
        if mode in asked
    )
    if "blur" in asked:
        sigma = asked["blur"][0]
        filters.append(Convolution(weights=_MILD_BLUR, columns=3) if sigma is None else libvips_blur(sigma))
    if not _OF_LCH.isdisjoint(asked):
        filters.append(_modulate(asked))
    if "unflatten" in asked:
        filters.append(vips_specs.WithoutWhite())
    if "sharpen" in asked:
        filters.append(_sharpen(*asked["sharpen"]))
    if "opacity" in asked and asked.get("background", (None,))[0]:
        filters.append(_mixed(asked["opacity"][0], asked["background"][0]))
    filters += _tones(asked)
    if "normalize" in asked:
        lower, upper = _or(asked["normalize"][0], 1), _or(asked["normalize"][1], 99)
        filters.append(vips_specs.Stretch(lower=int(lower), upper=int(upper)))
    if "clahe" in asked:
        width, height, slope = asked["clahe"]
        if width > size.width or (height or width) > size.height:
            raise impossible("clahe", f"its window is larger than the picture of {size.width}x{size.height}")
        filters.append(vips_specs.LocalEqualize(width=width, height=height or width, slope=_or(slope, 3)))
    if "tint" in asked and asked["tint"][0]:
        filters.append(vips_specs.ChromaTint(color=asked["tint"][0]))
    if "negate" in asked:
        filters.append(vips_specs.Negate(alpha=asked["negate"][0] is not False))
    return tuple(filters)


_OF_LCH = {"modulate", "brightness", "saturation", "hue", "lightness"}


def _modulate(asked: Mapping[str, tuple[Any, ...]]) -> vips_specs.Modulate:
    """Return the changes of all modifiers in LCh; each of them replaces those before it in the alphabet."""
    names = ("brightness", "saturation", "hue", "lightness")
    values = {name: asked[name][0] for name in ("brightness", "hue", "lightness") if name in asked}
    together = zip(names, asked.get("modulate", ()), strict=False)
    values |= {name: value for name, value in together if value is not None}
    values |= {"saturation": asked["saturation"][0]} if "saturation" in asked else {}
    return vips_specs.Modulate(**values)


def _sharpen(
    sigma: float | None,
    flat: float | None,
    jagged: float | None,
    bend: float | None,
    brighter: float | None,
    darker: float | None,
) -> Filter:
    if sigma is None:
        return Convolution(weights=_MILD_SHARPEN, columns=3)
    return LightnessSharpen(
        sigma=sigma,
        flat=_or(flat, 1.0),
        jagged=_or(jagged, 2.0),
        bend=_or(bend, 2.0),
        most_brighter=_or(brighter, 10.0),
        most_darker=_or(darker, 20.0),
    )


def _tones(asked: Mapping[str, tuple[Any, ...]]) -> list[Filter]:
    """Return the curves of gamma and linear."""
    curves = []
    if "gamma" in asked:
        inner = _or(asked["gamma"][0], 2.2)
        exponents = inner, 1 / _or(asked["gamma"][1], inner)
        curves += [[255 * (level / 255) ** exponent for level in range(256)] for exponent in exponents]
    if "linear" in asked:
        factor, addend = asked["linear"]
        curves.append([level * _or(factor, 1.0) + _or(addend, 0.0) for level in range(256)])
    tables = [bytes(min(255, max(0, int(value + 1e-6))) for value in curve) for curve in curves]
    return [Tones(red=table, green=table, blue=table) for table in tables]


def _mixed(opacity: float, color: Color) -> Tones:
    """Return the picture mixed with a color."""
    red, green, blue = (
        bytes(int(level * opacity + (1 - opacity) * channel + 0.5) for level in range(256))
        for channel in color.rgb
    )
    return Tones(red=red, green=green, blue=blue)


def _output(asked: Mapping[str, tuple[Any, ...]], format_: str | None, info: ImageInfo) -> dict[str, Any]:
    name = _FORMATS.get(format_ or "") or (info.format if info.format in _FORMATS.values() else "jpg")
    row = FORMATS[name]
    quality = asked.get("quality", (None,))[0]
    output: dict[str, Any] = {"format": name, "background": BLACK}
    if row.quality is not None:
        output["quality"] = quality or _QUALITIES.get(name, _QUALITY)
    elif name == "png" and quality:
        output["colors"] = _MOST_COLORS
    if info.animated and (not animates(name) or ("animated" not in asked and name != "gif")):
        output["frames"] = 1
    if name == "jpg":
        output |= {"encoding": "progressive", "subsampling": "420"}
    elif "444" in row.subsamplings and name in _QUALITIES:
        output["subsampling"] = "444"
    return output


def _first(arguments: tuple[Any, ...], default: Any) -> Any:
    return _or(arguments[0], default)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def impossible(name: str, why: str) -> DialectError:
    """Return the error for a modifier that cannot be applied."""
    return DialectError(f"Modifier '{name}' of ipx cannot be applied: {why}.")
