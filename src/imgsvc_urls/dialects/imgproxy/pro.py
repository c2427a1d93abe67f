"""Options of imgproxy Pro, as data: those that have an effect here, and the names of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from imgsvc_core.spec import Color, Filter
from imgsvc_core.spec.internal import ColorOverlay
from imgsvc_core.spec.options import from_base64
from imgsvc_urls.dialects.color_change import ColorChange
from imgsvc_urls.dialects.imgproxy.arguments import (
    ANYTHING,
    BOOLEAN,
    COLOR,
    NOT_NEGATIVE,
    SHARE,
    SIZE,
    Argument,
    check_count,
    decimal_if,
    not_found,
    one_of,
    whole_within,
)
from imgsvc_urls.dialects.reading import decimal

Apply: TypeAlias = Callable[[dict[str, Any], str, list[str]], None]


def _words(*words: str) -> Argument:
    return Argument(one_of(words), f"one of {', '.join(words)}" if len(words) > 1 else words[0])


_DIRECTIONS = {"down": 0.0, "left": 90.0, "up": 180.0, "right": 270.0}


def _direction(text: str) -> float:
    return _DIRECTIONS[text] if text in _DIRECTIONS else decimal(text) % 360


_LEVEL = Argument(whole_within(-255, 255), "an integer within -255 to 255 range")
_COLORS = Argument(whole_within(2, 256), "an integer within 2 to 256 range")
_URL = Argument(lambda text: from_base64(text).decode(), "a URL in URL-safe base64")
_PLACE = Argument(decimal_if(lambda value: abs(value) <= 100), "a decimal number within -100 to 100 range")
_DIRECTION = Argument(_direction, f"an angle in degrees, or one of {', '.join(_DIRECTIONS)}")
_ANGLE = Argument(lambda text: decimal(text) % 360, "an angle in degrees")
_IGNORED = ("", ANYTHING)


@attrs.frozen(kw_only=True)
class Pro:
    """What options of imgproxy Pro set."""

    brightness: int = 0
    contrast: float = 1.0
    saturation: float = 1.0
    monochrome: float = 0.0
    monochrome_color: Color = Color(0xB3, 0xB3, 0xB3)
    duotone: float = 0.0
    duotone_dark: Color = Color(0, 0, 0)
    duotone_light: Color = Color(255, 255, 255)
    colorize: float = 0.0
    colorize_color: Color = Color(0, 0, 0)
    colorize_keeps_alpha: bool = False
    gradient: float = 0.0
    gradient_color: Color = Color(0, 0, 0)
    gradient_angle: float = 0.0
    gradient_start: float = 0.0
    gradient_stop: float = 1.0
    background_alpha: float = 1.0
    crop_ratio: float = 0.0
    crop_enlarges: bool = False
    watermark_url: str | None = None
    watermark_width: int = 0
    watermark_height: int = 0
    watermark_angle: float = 0.0
    progressive: bool = False
    full_color: bool = False
    interlaced: bool = False
    quantized: bool = False
    colors: int = 256
    webp_compression: str = "lossy"
    avif_subsampling: str = "auto"

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What the options do with colors: one change, and what is laid over the picture."""
        change = (
            ColorChange()
            .brighter(self.brightness / 255)
            .with_contrast(self.contrast)
            .saturated(self.saturation)
            .toned((0, 0, 0), self.monochrome_color.rgb, self.monochrome)
            .toned(self.duotone_dark.rgb, self.duotone_light.rgb, self.duotone)
        )
        color = self.colorize_color
        if self.colorize_keeps_alpha:
            change = change.toned(color.rgb, color.rgb, self.colorize)
        return (
            *change.filters,
            ColorOverlay(color=color, opacity=0.0 if self.colorize_keeps_alpha else self.colorize),
            ColorOverlay(
                color=self.gradient_color,
                opacity=self.gradient,
                angle=self.gradient_angle,
                start=self.gradient_start,
                stop=self.gradient_stop,
            ),
        )


def _setting(*fields: tuple[str, Argument]) -> Apply:
    """Return how an option sets fields of `Pro` by its arguments, which may be empty."""

    def apply(values: dict[str, Any], name: str, arguments: list[str]) -> None:
        check_count(name, arguments, len(fields))
        given = {
            field: argument(name, text)
            for (field, argument), text in zip(fields, arguments, strict=False)
            if text and field
        }
        values["pro"] = attrs.evolve(values.get("pro", Pro()), **given)

    return apply


def _only(kind: Argument) -> Apply:
    """Return how an option is applied that may say only what is done anyway."""

    def apply(values: dict[str, Any], name: str, arguments: list[str]) -> None:
        kind(name, arguments[0])

    return apply


def _disable_animation(values: dict[str, Any], name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 1)
    if BOOLEAN(name, arguments[0]):
        values["max_animation_frames"] = 1


def _autoquality(values: dict[str, Any], name: str, arguments: list[str]) -> None:
    check_count(name, arguments, 5)
    method, target, *_ = (*arguments, "")
    if _words("none", "size")(name, method) == "size":
        values["max_bytes"] = SIZE(name, target)


def _unsupported(values: dict[str, Any], name: str, arguments: list[str]) -> None:
    raise not_found(f"Option '{name}' of imgproxy Pro is not supported.")


PRO: tuple[tuple[tuple[str, ...], Apply], ...] = (
    (("brightness", "br"), _setting(("brightness", _LEVEL))),
    (("contrast", "co"), _setting(("contrast", NOT_NEGATIVE))),
    (("saturation", "sa"), _setting(("saturation", NOT_NEGATIVE))),
    (
        ("adjust", "a"),
        _setting(("brightness", _LEVEL), ("contrast", NOT_NEGATIVE), ("saturation", NOT_NEGATIVE)),
    ),
    (("monochrome", "mc"), _setting(("monochrome", SHARE), ("monochrome_color", COLOR))),
    (("duotone", "dt"), _setting(("duotone", SHARE), ("duotone_dark", COLOR), ("duotone_light", COLOR))),
    (
        ("colorize", "col"),
        _setting(("colorize", SHARE), ("colorize_color", COLOR), ("colorize_keeps_alpha", BOOLEAN)),
    ),
    (
        ("gradient", "gr"),
        _setting(
            ("gradient", SHARE),
            ("gradient_color", COLOR),
            ("gradient_angle", _DIRECTION),
            ("gradient_start", _PLACE),
            ("gradient_stop", _PLACE),
        ),
    ),
    (("background_alpha", "bga"), _setting(("background_alpha", SHARE))),
    (
        ("crop_aspect_ratio", "crop_ar", "car"),
        _setting(("crop_ratio", NOT_NEGATIVE), ("crop_enlarges", BOOLEAN)),
    ),
    (("watermark_url", "wmu"), _setting(("watermark_url", _URL))),
    (("watermark_size", "wms"), _setting(("watermark_width", SIZE), ("watermark_height", SIZE))),
    (("watermark_rotate", "wm_rot", "wmr"), _setting(("watermark_angle", _ANGLE))),
    (("jpeg_options", "jpgo"), _setting(("progressive", BOOLEAN), ("full_color", BOOLEAN), *[_IGNORED] * 4)),
    (("png_options", "pngo"), _setting(("interlaced", BOOLEAN), ("quantized", BOOLEAN), ("colors", _COLORS))),
    (("webp_options", "webpo"), _setting(("webp_compression", _words("lossy", "lossless")), *[_IGNORED] * 2)),
    (("avif_options", "avifo"), _setting(("avif_subsampling", _words("auto", "on", "off")))),
    (("disable_animation", "da"), _disable_animation),
    (("autoquality", "aq"), _autoquality),
    (("resizing_algorithm", "ra"), _only(_words("lanczos3"))),
    (("unsharp_masking", "ush"), _only(_words("none"))),
    (("color_profile", "cp", "icc"), _only(_words("srgb"))),
    (("page", "pg"), _only(_words("0"))),
    (("pages", "pgs"), _only(_words("1"))),
    (("dpi",), _only(_words("0"))),
    (("hashsum", "hs"), _only(_words("none"))),
    *(
        (names, _unsupported)
        for names in (
            ("objects_position", "obj_pos", "op"),
            ("crop_objects",),
            ("progressive_blur", "pbl"),
            ("blur_areas", "ba"),
            ("blur_detections", "bd"),
            ("draw_detections", "dd"),
            ("watermark_text", "wmt"),
            ("watermark_shadow", "wmsh"),
            ("style", "st"),
            ("video_thumbnail_second", "vts"),
            ("video_thumbnail_keyframes", "vtk"),
            ("video_thumbnail_tile", "vtt"),
            ("video_thumbnail_animation", "vta"),
            ("fallback_image_url", "fiu"),
            ("bypass_cache", "bc"),
            ("cache_tags", "ct"),
        )
    ),
)
