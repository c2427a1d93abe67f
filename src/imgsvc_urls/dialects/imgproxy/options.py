"""The options in URLs of imgproxy, as data: their names, their arguments and what they set."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from imgsvc_core.spec import Color
from imgsvc_urls.dialects.imgproxy.arguments import (
    ANGLE,
    ANYTHING,
    BASE64_NAME,
    BOOLEAN,
    BYTE,
    COLOR,
    COUNT,
    FORBIDDEN,
    FORMAT,
    NAME,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    QUALITY,
    SHARE,
    SIZE,
    THRESHOLD,
    TIME,
    TYPE,
    Argument,
    check_count,
    not_found,
    one_of,
)
from imgsvc_urls.dialects.imgproxy.pro import PRO, Pro
from imgsvc_urls.errors import DialectError

_EDGES = ("no", "so", "ea", "we", "noea", "nowe", "soea", "sowe", "ce")
_POSITION = Argument(one_of((*_EDGES, "re", "ch")), f"one of {', '.join(_EDGES)}, re, ch")


@attrs.frozen
class Gravity:
    """An edge, a corner or the center with offsets, a focal point, smart, or the tiles of a watermark."""

    type: str = "ce"
    x: float = 0.0
    y: float = 0.0


@attrs.frozen
class Extend:
    """Whether the canvas is extended, and where the picture lies on it."""

    enabled: bool = False
    gravity: Gravity = Gravity()


@attrs.frozen
class Trim:
    """What is cut off around the picture, if there is a threshold. The usual color is the first pixel's."""

    threshold: float | None = None
    color: Color | None = None
    equal_horizontally: bool = False
    equal_vertically: bool = False


@attrs.frozen
class Watermark:
    """How the watermark lies on the picture."""

    opacity: float = 0.0
    position: Gravity = Gravity()
    scale: float = 0.0


@attrs.frozen(kw_only=True)
class Options:
    """What the options of a URL set, whatever their order."""

    resizing_type: Literal["fit", "fill", "fill-down", "force", "auto"] = "fit"
    width: int = 0
    height: int = 0
    min_width: int = 0
    min_height: int = 0
    zoom: tuple[float, float] = (1.0, 1.0)
    dpr: float = 1.0
    enlarge: bool = False
    extend: Extend = Extend()
    extend_aspect_ratio: Extend = Extend()
    gravity: Gravity = Gravity()
    crop: tuple[float, float] = (0.0, 0.0)
    crop_gravity: Gravity | None = None
    trim: Trim = Trim()
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    auto_rotate: bool = True
    rotate: int = 0
    flip: tuple[bool, bool] = (False, False)
    background: Color | None = None
    blur: float = 0.0
    sharpen: float = 0.0
    pixelate: int = 0
    watermark: Watermark = Watermark()
    quality: int = 0
    format_quality: tuple[tuple[str, int], ...] = ()
    max_bytes: int = 0
    format: str | None = None
    strip_metadata: bool = True
    keep_copyright: bool = True
    preserve_hdr: bool = False
    skip_processing: tuple[str, ...] = ()
    raw: bool = False
    cachebuster: str = ""
    expires: int = 0
    filename: str | None = None
    return_attachment: bool = False
    max_src_resolution: float | None = None
    max_src_file_size: int = 0
    max_animation_frames: int = 0
    max_animation_frame_resolution: float = 0.0
    max_result_dimension: int = 0
    pro: Pro = Pro()


Values: TypeAlias = dict[str, Any]
Segment: TypeAlias = tuple[str, list[str]]  # the name of an option and its arguments
_Apply: TypeAlias = Callable[[Values, str, list[str]], None]


def read_options(
    segments: Iterable[Segment],
    presets: Mapping[str, Sequence[Segment]],
    *,
    defaults: Values | None = None,
    extension: str | None = None,
    allowed: Collection[str] = (),
    security: bool = False,
) -> Options:
    """Return what options set. A preset named ``default`` comes first, and the extension last.

    Args:
        segments: the options of a URL in their order.
        presets: options by the names of presets.
        defaults: what options change.
        extension: the extension of the source.
        allowed: names of the only options that URLs may have; all if empty. Presets may have any.
        security: whether there may be options that change limits.

    Raises:
        DialectError: an option is wrong; the message names it.
    """
    values: Values = dict(defaults or {})
    if "default" in presets:
        _apply_all(values, [("preset", ["default"])], presets, security=security)
    for name, _ in segments:
        if allowed and name not in allowed:
            raise not_found(f"Option '{name[:60]}' is not allowed in URLs.")
    _apply_all(values, segments, presets, security=security)
    if extension and not values.get("raw"):
        values["format"] = FORMAT("@", extension)
    return Options(**values)


def _apply_all(
    values: Values,
    segments: Iterable[Segment],
    presets: Mapping[str, Sequence[Segment]],
    used: tuple[str, ...] = (),
    *,
    security: bool,
) -> None:
    """Apply options, and those of presets at their places. A preset within itself is skipped."""
    for name, arguments in segments:
        if name in ("preset", "pr"):
            for preset in arguments:
                if preset not in presets:
                    raise not_found(f"There is no preset '{preset[:60]}'.")
                if preset not in used:
                    _apply_all(values, presets[preset], presets, (*used, preset), security=security)
            continue
        apply = OPTIONS.get(name)
        if apply is None:
            raise not_found(f"There is no option '{name[:60]}' of imgproxy.")
        if name in _LIMITING and not security:
            message = f"Option '{name}' must be left out: limits are set by the operator of the service."
            raise DialectError(message, status=FORBIDDEN)
        apply(values, name, arguments)


def _setting(field: str, argument: Argument) -> _Apply:
    """Return how an option of one argument sets a field."""

    def apply(values: Values, name: str, arguments: list[str]) -> None:
        check_count(name, arguments, 1)
        values[field] = argument(name, arguments[0])

    return apply


def _ignore(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 1)


def _resize(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 8)
    if arguments[0]:
        values["resizing_type"] = TYPE(name, arguments[0])
    _size(values, name, arguments[1:])


def _size(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 7)
    fields = (("width", SIZE), ("height", SIZE), ("enlarge", BOOLEAN))
    for (field, argument), text in zip(fields, arguments, strict=False):
        if text:
            values[field] = argument(name, text)
    if len(arguments) > 3 and arguments[3]:
        _extending("extend")(values, name, arguments[3:])


def _extending(field: str) -> _Apply:
    def apply(values: Values, name: str, arguments: list[str]) -> None:
        check_count(name, arguments, 4)
        gravity: Gravity = values.get(field, Extend()).gravity
        if len(arguments) > 1:
            gravity = _gravity(name, arguments[1:], (*_EDGES, "fp"), gravity)
        values[field] = Extend(BOOLEAN(name, arguments[0]), gravity)

    return apply


def _gravity(name: str, arguments: list[str], types: Collection[str], old: Gravity) -> Gravity:
    """Return a gravity; offsets that are not given are those of the old one."""
    type_ = Argument(one_of(types), f"one of {', '.join(types)}")(name, arguments[0])
    if type_ == "sm":
        check_count(name, arguments, 1)
        return Gravity(type_)
    check_count(name, arguments, 3)
    if type_ == "fp" and len(arguments) < 3:
        raise not_found(f"Option '{name}' must have both coordinates of the focal point fp:x:y.")
    offset = SHARE if type_ == "fp" else NUMBER
    x, y = _merged((old.x, old.y), (offset, offset), name, arguments[1:])
    return Gravity(type_, x, y)


def _merged(
    old: tuple[Any, ...], kinds: Sequence[Argument], name: str, arguments: Sequence[str]
) -> tuple[Any, ...]:
    """Return the values of arguments, and the old values of those that are empty or missing."""
    given = zip(old, kinds, arguments, strict=False)
    values = [kind(name, text) if text else value for value, kind, text in given]
    return (*values, *old[len(values) :])


def _set_gravity(values: Values, name: str, arguments: list[str]) -> None:
    old = values.get("gravity", Gravity())
    values["gravity"] = _gravity(name, arguments, (*_EDGES, "sm", "fp"), old)


def _crop(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 5)
    sides = [NOT_NEGATIVE(name, text) for text in arguments[:2]]
    values["crop"] = (*sides, *values.get("crop", (0.0, 0.0))[len(sides) :])
    if len(arguments) > 2:
        old = values.get("crop_gravity", Gravity())
        values["crop_gravity"] = _gravity(name, arguments[2:], (*_EDGES, "sm", "fp"), old)


def _zoom(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 2)
    factors = [POSITIVE(name, text) for text in arguments]
    values["zoom"] = (factors[0], factors[-1])


def _trim(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 4)
    old: Trim = values.get("trim", Trim())
    equally = old.equal_horizontally, old.equal_vertically
    given = _merged((None, None, *equally), (THRESHOLD, COLOR, BOOLEAN, BOOLEAN), name, arguments)
    values["trim"] = Trim(*given)


def _padding(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 4)
    top, right, bottom, left = (SIZE(name, text) if text else None for text in (*arguments, "", "", "")[:4])
    old_top, *_ = values.get("padding", (0, 0, 0, 0))
    top = old_top if top is None else top
    right = top if right is None else right
    values["padding"] = (top, right, top if bottom is None else bottom, right if left is None else left)


def _flip(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 2)
    values["flip"] = _merged(values.get("flip", (False, False)), (BOOLEAN, BOOLEAN), name, arguments)


def _background(values: Values, name: str, arguments: list[str]) -> None:
    if len(arguments) == 1:
        values["background"] = COLOR(name, arguments[0]) if arguments[0] else None
    elif len(arguments) == 3:
        values["background"] = Color(*(BYTE(name, text) for text in arguments))
    else:
        BYTE(name, ":".join(arguments))


def _set_watermark(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 7)  # of which two mean nothing
    old: Watermark = values.get("watermark", Watermark())
    place = old.position
    opacity = SHARE(name, arguments[0])
    type_, x, y, scale = _merged(
        (place.type, place.x, place.y, old.scale), (_POSITION, NUMBER, NUMBER, POSITIVE), name, arguments[1:]
    )
    values["watermark"] = Watermark(opacity, Gravity(type_, x, y), scale)


def _format_quality(values: Values, name: str, arguments: list[str]) -> None:
    if len(arguments) % 2:
        message = f"Option '{name}' must be pairs of a format and a quality, got {len(arguments)} arguments."
        raise not_found(message)
    qualities = dict(values.get("format_quality", ()))
    for format_, quality in zip(arguments[::2], arguments[1::2], strict=True):
        qualities[FORMAT(name, format_)] = QUALITY(name, quality)
    values["format_quality"] = tuple(sorted(qualities.items()))


def _skip_processing(values: Values, name: str, arguments: list[str]) -> None:
    formats = {FORMAT(name, text) for text in arguments}
    values["skip_processing"] = tuple(sorted({*values.get("skip_processing", ()), *formats}))


def _filename(values: Values, name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 2)
    encoded = len(arguments) > 1 and BOOLEAN(name, arguments[1])
    text = arguments[0]
    values["filename"] = (BASE64_NAME if encoded else NAME)(name, text) if text else None


_LIMITS: tuple[tuple[tuple[str, ...], _Apply], ...] = (
    (("max_src_resolution", "msr"), _setting("max_src_resolution", NOT_NEGATIVE)),
    (("max_src_file_size", "msfs"), _setting("max_src_file_size", SIZE)),
    (("max_animation_frames", "maf"), _setting("max_animation_frames", COUNT)),
    (("max_animation_frame_resolution", "mafr"), _setting("max_animation_frame_resolution", NOT_NEGATIVE)),
    (("max_result_dimension", "mrd"), _setting("max_result_dimension", SIZE)),
)
_LIMITING = {name for names, _ in _LIMITS for name in names}

TABLE: tuple[tuple[tuple[str, ...], _Apply], ...] = (
    (("resize", "rs"), _resize),
    (("size", "s"), _size),
    (("resizing_type", "rt"), _setting("resizing_type", TYPE)),
    (("width", "w"), _setting("width", SIZE)),
    (("height", "h"), _setting("height", SIZE)),
    (("min-width", "mw"), _setting("min_width", SIZE)),
    (("min-height", "mh"), _setting("min_height", SIZE)),
    (("zoom", "z"), _zoom),
    (("dpr",), _setting("dpr", POSITIVE)),
    (("enlarge", "el"), _setting("enlarge", BOOLEAN)),
    (("extend", "ex"), _extending("extend")),
    (("extend_aspect_ratio", "extend_ar", "exar"), _extending("extend_aspect_ratio")),
    (("gravity", "g"), _set_gravity),
    (("crop", "c"), _crop),
    (("trim", "t"), _trim),
    (("padding", "pd"), _padding),
    (("auto_rotate", "ar"), _setting("auto_rotate", BOOLEAN)),
    (("rotate", "rot"), _setting("rotate", ANGLE)),
    (("flip", "fl"), _flip),
    (("background", "bg"), _background),
    (("blur", "bl"), _setting("blur", NOT_NEGATIVE)),
    (("sharpen", "sh"), _setting("sharpen", NOT_NEGATIVE)),
    (("pixelate", "pix"), _setting("pixelate", SIZE)),
    (("watermark", "wm"), _set_watermark),
    (("quality", "q"), _setting("quality", QUALITY)),
    (("format_quality", "fq"), _format_quality),
    (("max_bytes", "mb"), _setting("max_bytes", SIZE)),
    (("format", "f", "ext"), _setting("format", FORMAT)),
    (("strip_metadata", "sm"), _setting("strip_metadata", BOOLEAN)),
    (("keep_copyright", "kcr"), _setting("keep_copyright", BOOLEAN)),
    (("strip_color_profile", "scp"), _ignore),  # results are in sRGB
    (("enforce_thumbnail", "eth"), _ignore),
    (("preserve_hdr", "ph"), _setting("preserve_hdr", BOOLEAN)),
    (("skip_processing", "skp"), _skip_processing),
    (("raw",), _setting("raw", BOOLEAN)),
    (("cachebuster", "cb"), _setting("cachebuster", ANYTHING)),
    (("expires", "exp"), _setting("expires", TIME)),
    (("filename", "fn"), _filename),
    (("return_attachment", "att"), _setting("return_attachment", BOOLEAN)),
    *_LIMITS,
    *PRO,
)

OPTIONS: Mapping[str, _Apply] = {name: apply for names, apply in TABLE for name in names}
"""How each option is applied, by its long and short names. ``preset`` is applied apart."""
