"""What a URL of thumbor asks of a picture, as a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.dialects.building import (
    Side,
    built,
    cut,
    gravity_of,
    placed_watermark,
    stretched,
    truncated_blur,
)
from imgsvc_core.dialects.thumbor.filters import Filter, is_true
from imgsvc_core.dialects.thumbor.geometry import (
    FocalArea,
    Layout,
    layout,
    mirrored,
    proportional,
    turned,
    upscaled,
)
from imgsvc_core.dialects.thumbor.path import BAD_REQUEST, Parts
from imgsvc_core.errors import DialectError
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Color, Spec, Watermark
from imgsvc_core.spec.internal import GaussianBlur
from imgsvc_core.spec.watermark import Tiling

Smart = Literal["none", "face", "faces", "smart"]

IMPOSSIBLE = ("colorize", "convolution", "curve", "equalize", "frame")

_FORMATS = {
    "png": "png", "jpeg": "jpg", "jpg": "jpg", "gif": "gif", "webp": "webp", "avif": "avif", "heic": "heic",
    "heif": "heic",
}  # fmt: skip
_QUALITY, _QUALITIES = 80, {"heic": 75}
_WITH_MAX_BYTES = ("jpg", "webp")
_LARGEST_RADIUS = 150  # of blurs
_FRAMING = ("round_corner", "fill", "watermark")  # in our order
_BEFORE_FRAMING = (
    "blur", "brightness", "contrast", "grayscale", "proportion", "rgb", "rotate", "saturation", "sharpen",
    "upscale",
)  # fmt: skip
_AFTER_TRIM = (
    "autojpg", "format", "max_age", "max_bytes", "noise", "quality", "strip_exif", "strip_icc",
)  # fmt: skip
_TRIM = re.compile(r"trim(?::(top-left|bottom-right))?(?::([0-9]{1,9}))?")
_FOCAL = re.compile(r"([0-9]{1,9})x([0-9]{1,9}):([0-9]{1,9})x([0-9]{1,9})")


def request_of(
    parts: Parts,
    filters: tuple[Filter, ...],
    info: ImageInfo,
    *,
    focal: Iterable[FocalArea],
    smart: Smart,
    watermarks: Mapping[str, str],
    accepted: Sequence[str] = (),
) -> Spec:
    """Return the request.

    Args:
        parts: the parts of the URL.
        filters: the filters of the URL.
        info: the facts of the picture.
        focal: what should stay visible.
        smart: the gravity that the part ``smart`` stands for.
        watermarks: the ids of watermarks by their URLs.
        accepted: formats for a URL without one, as the client accepts them, the preferred one first.

    Raises:
        DialectError: a part or a filter asks for something that is not possible; the message names it.
    """
    check_possible(parts, filters)
    if parts.trim is not None:
        return built(**_trimmed(parts, filters), output=_output(filters, info, accepted, flattened=None))
    size = Size(*info.upright_size)
    called = {item.name for item in filters}
    found = layout(
        parts,
        size,
        stretch=parts.stretch or "stretch" in called,
        no_upscale="no_upscale" in called,
        focal=list(focal),
    )
    drawn = _drawn(filters, found)
    frame = _Frame(drawn.size, found.asked, watermarks)
    for item in filters:
        frame.add(item)
    output = _output(filters, info, accepted, flattened=frame.flattened)
    return built(
        flip={"horizontal": parts.flip[0], "vertical": parts.flip[1]} if any(parts.flip) else None,
        rotate={"angle": -drawn.angle % 360} if drawn.angle else None,
        **_reduced(parts, found, drawn, size, smart),
        adjust=drawn.adjust or None,
        filter=GaussianBlur(sigma=drawn.blur),
        mask=frame.mask,
        canvas=frame.canvas,
        watermark=frame.watermark,
        output=output,
    )


def check_possible(parts: Parts, filters: tuple[Filter, ...]) -> None:
    """Raise `DialectError` if parts or filters are not possible with any picture."""
    for name in ("debug", "meta"):
        if getattr(parts, name):
            raise DialectError(f"'{name}' is not supported in URLs of thumbor.", status=BAD_REQUEST)
    framed = ""
    for item in filters:
        if item.name in IMPOSSIBLE:
            raise impossible(item.name, "there is no such operation")
        if framed and item.name in _BEFORE_FRAMING:
            raise impossible(item.name, f"it must stand before '{framed}'")
        if item.name in _FRAMING:
            if framed and _FRAMING.index(item.name) <= _FRAMING.index(framed):
                why = "it is given twice" if item.name == framed else f"it must stand before '{framed}'"
                raise impossible(item.name, why)
            framed = item.name


def _trimmed(parts: Parts, filters: tuple[Filter, ...]) -> dict[str, Any]:
    """Return the operations after a trim, which must not depend on the size that it leaves."""
    corner, threshold = _TRIM.findall(parts.trim or "")[0]
    if corner == "bottom-right":
        raise _impossible_trim("the color is that of the top left corner")
    for item in filters:
        if item.name not in _AFTER_TRIM:
            raise _impossible_trim(f"with filter '{item.name}' the result depends on what is cut away")
    width, height = parts.width, parts.height
    if parts.crop or parts.full or parts.adaptive or parts.smart or None in (width, height):
        raise _impossible_trim("it is supported together with a size, fit-in and alignment only")
    resize: dict[str, Any] = {"width": width or None, "height": height or None}
    if parts.fit_in:
        resize |= {"upscale": False}
    elif width and height:
        resize |= {"mode": "stretch"} if parts.stretch else {"mode": "fit", "gravity": _alignment(parts)}
    flip = {"horizontal": parts.flip[0], "vertical": parts.flip[1]} if any(parts.flip) else None
    if flip and resize.get("gravity", "center") != "center":
        raise _impossible_trim("it is not supported together with mirroring and alignment")
    return {
        "trim": {"threshold": min(255, int(threshold or 0))},
        "flip": flip,
        "resize": resize if width or height else None,
    }


def _alignment(parts: Parts) -> str:
    sides: dict[str, Side] = {"left": "near", "top": "near", "right": "far", "bottom": "far"}
    return gravity_of(sides.get(parts.halign, "center"), sides.get(parts.valign, "center"))


def _impossible_trim(why: str) -> DialectError:
    return DialectError(f"'trim' of thumbor cannot be applied: {why}.", status=BAD_REQUEST)


def focal_areas(filters: tuple[Filter, ...]) -> Iterator[FocalArea]:
    """Yield the rectangles that filters ``focal`` name; empty ones are left out."""
    for item in filters:
        found = _FOCAL.match(item.arguments[0]) if item.name == "focal" else None
        if found:
            area = FocalArea(*map(int, found.groups()))
            if area.left < area.right and area.top < area.bottom:
                yield area


def impossible(name: str, why: str) -> DialectError:
    """Return the error for a filter that cannot be applied."""
    return DialectError(f"Filter '{name}' of thumbor cannot be applied: {why}.", status=BAD_REQUEST)


@attrs.define
class _Drawn:
    """The picture after the filters that come before frames: its size, counterclockwise angle and look."""

    size: Size
    angle: int = 0
    gain: float = 1.0  # each channel x becomes gain * x + lift
    lift: float = 0.0
    saturation: float = 1.0
    sharpen: float = 0.0
    blur: float = 0.0

    @property
    def adjust(self) -> dict[str, Any]:
        """The adjustments. Brightness and contrast of any order become the brightness before a contrast."""
        brightness = (self.lift + self.gain / 2 - 0.5) / self.gain if self.gain else 0.0
        values = {
            "brightness": _percent(brightness),
            "contrast": _percent(self.gain - 1),
            "saturation": _percent(self.saturation - 1),
            "sharpen": min(100, round(self.sharpen)),
        }
        return {name: value for name, value in values.items() if value}


def _drawn(filters: tuple[Filter, ...], found: Layout) -> _Drawn:
    drawn = _Drawn(found.size)
    blurs = 0.0
    for item in filters:
        numbers = item.arguments
        match item.name:
            case "rotate" if int(numbers[0]) % 90 == 0:
                angle = int(numbers[0]) % 360
                drawn.angle = (drawn.angle + angle) % 360
                drawn.size = Size(drawn.size.height, drawn.size.width) if angle % 180 else drawn.size
            case "proportion":
                drawn.size = proportional(drawn.size, float(numbers[0]))
            case "upscale":
                drawn.size = upscaled(drawn.size, found.asked)
            case "brightness":
                drawn.lift += _clamped(int(numbers[0]), 100) / 100
            case "rgb":
                if len({int(number) for number in numbers}) > 1:
                    raise impossible("rgb", "red, green and blue must be equal")
                drawn.lift += _clamped(int(numbers[0]), 100) / 100
            case "contrast":
                factor = (1 + _clamped(int(numbers[0]), 100) / 100) ** 2
                drawn.gain, drawn.lift = factor * drawn.gain, factor * (drawn.lift - 0.5) + 0.5
            case "saturation":
                drawn.saturation *= _clamped(float(numbers[0]), 100)
            case "grayscale":
                drawn.saturation = 0.0
            case "sharpen":
                drawn.sharpen += 30 * max(0.0, float(numbers[0]))
            case "blur":
                radius, sigma = float(numbers[0]), float(numbers[1]) if len(numbers) > 1 else 0.0
                reach = min(int(radius), _LARGEST_RADIUS)
                blurs += truncated_blur(abs(sigma) or radius, reach).sigma ** 2 if reach else 0.0
    drawn.blur = blurs**0.5
    return drawn


def _reduced(parts: Parts, found: Layout, drawn: _Drawn, size: Size, smart: Smart) -> dict[str, Any]:
    """Return crop and resize, in the frame of the mirrored and turned picture."""
    flat = Size(size.height, size.width) if drawn.angle % 180 else size
    cropped, part = (
        turned(mirrored(box, size, parts.flip), size, drawn.angle) for box in (found.cropped, found.part)
    )
    if parts.smart and smart != "none" and part.size != cropped.size:
        box = {"width": drawn.size.width, "height": drawn.size.height}
        return {"crop": cut(cropped, flat), "resize": {"mode": "fit", "gravity": smart, **box}}
    return {"crop": cut(part, flat), "resize": stretched(part.size, drawn.size)}


class _Frame:
    """What comes around and over the picture."""

    def __init__(self, size: Size, asked: Size, watermarks: Mapping[str, str]) -> None:
        self.size, self.asked = size, asked
        self.watermarks = watermarks
        self.mask: dict[str, Any] | None = None
        self.canvas: dict[str, Any] | None = None
        self.watermark: Watermark | None = None
        self.flattened: Color | None = None

    def add(self, item: Filter) -> None:
        """Add what a filter asks for."""
        match item.name:
            case "round_corner":
                self.mask = _mask(item)
            case "fill":
                self._fill(*item.arguments)
            case "background_color":
                self.flattened = _color(item.name, item.arguments[0])
            case "watermark":
                self.watermark = self._watermark(*item.arguments)

    def _fill(self, name: str, transparent: str = "false") -> None:
        """Lay the picture on the middle of a canvas of the size that was asked for."""
        if name in ("auto", "blur"):
            raise impossible("fill", f"'{name}' is not supported; name a color")
        color = _color("fill", name)
        canvas = Size(self.asked.width or self.size.width, self.asked.height or self.size.height)
        if self.size.width > canvas.width or self.size.height > canvas.height:
            raise impossible("fill", "the picture is larger than the canvas after the other filters")
        if self.size != canvas:
            self.canvas = {"width": canvas.width, "height": canvas.height, "background": color}
        if is_true(transparent):
            self.flattened = color
        self.size = canvas

    def _watermark(
        self, url: str, x: str, y: str, alpha: str, across: str = "none", down: str = "none"
    ) -> Watermark | None:
        if int(alpha) == 100:
            return None
        if url not in self.watermarks:
            raise impossible("watermark", "its URL is not in the table of watermarks")
        width, height = (
            max(1, round(side * int(ratio) / 100)) if ratio != "none" and int(ratio) > 0 else None
            for ratio, side in zip((across, down), self.size, strict=True)
        )
        return placed_watermark(
            self.watermarks[url],
            1 - int(alpha) / 100,
            _distance(x, self.size.width),
            _distance(y, self.size.height),
            width=width,
            height=height,
        )


def _mask(item: Filter) -> dict[str, Any] | None:
    radius, red, green, blue, *transparent = item.arguments
    first, _, second = radius.partition("|")
    if second and int(second) != int(first):
        raise impossible("round_corner", "both radii must be equal")
    color = Color(*(min(255, int(channel)) for channel in (red, green, blue)))
    background = None if transparent and is_true(transparent[0]) else color
    return {"shape": "rounded", "radius": int(first), "background": background}


def _distance(text: str, side: int) -> tuple[Side | Tiling, int]:
    """Return from where a position of a watermark is measured and how far it is, or how it is repeated."""
    if text == "center":
        return "center", 0
    if text == "repeat":
        return "spread", 0
    number = text.removeprefix("-")
    if number.endswith("p"):
        number = str(round(side * int(number[:-1]) / 100 + 1e-5))
    return "far" if text.startswith("-") else "near", int(number)


def _color(filter_: str, text: str) -> Color | None:
    """Return the color that a filter names as CSS does or by hexadecimal digits; `None` is transparent."""
    from PIL import ImageColor  # thumbor takes the names from there as well

    if text == "transparent":
        return None
    for form in (text, f"#{text}"):
        try:
            return Color(*ImageColor.getrgb(form))
        except ValueError:
            continue
    raise impossible(filter_, f"there is no color '{text[:60]}'")


def _output(
    filters: tuple[Filter, ...], info: ImageInfo, accepted: Sequence[str], *, flattened: Color | None
) -> dict[str, Any]:
    asked = {item.name: item.arguments for item in filters}
    format_ = named_format(filters) or _unnamed_format(asked, info, accepted)
    row = FORMATS[format_]
    output: dict[str, Any] = {"format": format_}
    if row.quality is not None:
        quality = int(asked["quality"][0]) if "quality" in asked else _QUALITIES.get(format_, _QUALITY)
        output["quality"] = min(100, max(1, quality))
    if format_ == "jpg":
        output["subsampling"] = "444" if info.subsample == "4:4:4" else "420"  # as in the source
    if format_ == "webp" and output["quality"] == 100:
        output["lossless"] = True
    if format_ in _WITH_MAX_BYTES and "max_bytes" in asked:
        output["max_bytes"] = max(100, int(asked["max_bytes"][0]))
    if flattened is not None:
        output |= {"background": attrs.evolve(flattened, alpha=255), "flatten": row.alpha}
    if "cover" in asked and info.animated and row.animation:
        raise impossible("cover", f"a {row.title} keeps all frames")
    return output


def named_format(filters: Iterable[Filter]) -> str | None:
    """Return the format that the last filter ``format`` names, if it is known."""
    named = [item.arguments[0] for item in filters if item.name == "format"]
    return _FORMATS.get(named[-1].lower()) if named else None


def _unnamed_format(asked: Mapping[str, tuple[str, ...]], info: ImageInfo, accepted: Sequence[str]) -> str:
    if accepted and not info.animated:
        return accepted[0]
    opaque = info.format == "png" and not info.alpha
    if opaque and "autojpg" in asked and (not asked["autojpg"] or is_true(asked["autojpg"][0])):
        return "jpg"
    return "png" if info.format == "tiff" else FORMATS[info.format].becomes


def _clamped(value: float, most: float) -> float:
    return max(-most, min(most, value))


def _percent(value: float) -> int:
    return round(_clamped(100 * value, 100))
