"""The filters of a URL that change pixels, in their order, as filters of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Color, thumbor_filters
from imgsvc_core.spec import Filter as Step
from imgsvc_core.spec.internal import GaussianBlur
from imgsvc_core.spec.watermark import Tiling
from imgsvc_urls.dialects.building import Side, placed_watermark, truncated_blur
from imgsvc_urls.dialects.thumbor.filters import Filter, is_true
from imgsvc_urls.dialects.thumbor.geometry import proportional, upscaled
from imgsvc_urls.dialects.thumbor.tones import blended, curved, shifted, spread
from imgsvc_urls.errors import DialectError

_LARGEST_RADIUS = 150  # of blurs
_GROUND_RADIUS = 50  # of the blur of fill(blur)
_POINT = re.compile(r"\(([0-9]+),([0-9]+)\)")
_MOST_COLUMNS = 1024


@attrs.define
class Drawing:
    """The picture after some filters: its size, whether it may be transparent, and what they do.

    Args:
        size: the size that it has so far.
        asked: the size of the URL, which some filters go by. Free sides are 0.
        watermarks: the ids of watermarks by their URLs.
        alpha: whether pixels may be transparent.
        keeps_alpha: whether the format of the result has transparency.
    """

    size: Size
    asked: Size
    watermarks: Mapping[str, str]
    alpha: bool
    keeps_alpha: bool
    steps: list[Step] = attrs.field(factory=list)

    def add_all(self, filters: Iterable[Filter]) -> None:
        """Add what filters do; those that do not change pixels do nothing here."""
        for item in filters:
            add = getattr(self, f"_add_{item.name}", None)
            if add is not None:
                add(*item.arguments)
        if self.alpha and not self.keeps_alpha:
            self.steps.append(thumbor_filters.WithoutAlpha())

    def _tones(self, *tables: bytes) -> None:
        red, green, blue = tables if len(tables) == 3 else tables * 3
        self.steps.append(thumbor_filters.Tones(red=red, green=green, blue=blue))

    def _add_brightness(self, percent: str) -> None:
        self._tones(shifted(int(percent)))

    def _add_contrast(self, percent: str) -> None:
        self._tones(spread(int(percent)))

    def _add_rgb(self, *percents: str) -> None:
        self._tones(*(shifted(int(percent)) for percent in percents))

    def _add_colorize(self, red: str, green: str, blue: str, fill: str) -> None:
        try:
            colors = bytes.fromhex(fill)
        except ValueError:
            colors = b""
        if len(colors) != 3:
            raise impossible("colorize", "the color must have six hexadecimal digits")
        percents = map(int, (red, green, blue))
        self._tones(*(blended(percent, color) for percent, color in zip(percents, colors, strict=True)))

    def _add_curve(self, *curves: str) -> None:
        points = [[(int(x), int(y)) for x, y in _POINT.findall(curve)] for curve in curves]
        of_all, *channels = map(curved, points)
        self._tones(*(channel.translate(of_all) for channel in channels))

    def _add_saturation(self, factor: str) -> None:
        self.steps.append(thumbor_filters.RootSaturation(factor=float(factor)))

    def _add_grayscale(self) -> None:
        self.steps.append(thumbor_filters.Grayscale())

    def _add_equalize(self) -> None:
        self.steps.append(thumbor_filters.Equalize())

    def _add_noise(self, amount: str, seed: str = "0") -> None:
        self.steps.append(thumbor_filters.Noise(amount=int(amount), seed=int(seed)))

    def _add_sharpen(self, amount: str, radius: str, luma: str) -> None:
        sharpen = thumbor_filters.WaveletSharpen(
            amount=float(amount), radius=float(radius), luma=is_true(luma)
        )
        self.steps.append(sharpen)

    def _add_blur(self, radius: str, sigma: str = "0") -> None:
        reach = min(int(radius), _LARGEST_RADIUS)
        blur = truncated_blur(abs(float(sigma)) or int(radius), reach)
        self.steps.append(GaussianBlur(sigma=blur.sigma, unweighted=self.alpha))

    def _add_convolution(self, weights: str, columns: str, normalize: str = "true") -> None:
        numbers, width = [float(weight) for weight in weights.split(";")], int(columns)
        rows, rest = divmod(len(numbers), width)
        if rest or rows * width % 2 == 0 or len(numbers) > _MOST_COLUMNS:
            raise impossible("convolution", "it must have an odd number of rows and columns of weights")
        total = sum(numbers)
        if is_true(normalize) and total:
            numbers = [number / total for number in numbers]
        self.steps.append(thumbor_filters.Convolution(weights=tuple(numbers), columns=width))

    def _add_rotate(self, degrees: str) -> None:
        angle = int(degrees) % 360  # counterclockwise
        if angle % 90 == 0:
            self.steps.append(thumbor_filters.QuarterTurn(angle=(360 - angle) % 360))
            self.size = Size(self.size.height, self.size.width) if angle % 180 else self.size

    def _add_proportion(self, factor: str) -> None:
        self._resample(proportional(self.size, float(factor)))

    def _add_upscale(self) -> None:
        self._resample(upscaled(self.size, self.asked))

    def _resample(self, size: Size) -> None:
        if size != self.size:
            self.steps.append(thumbor_filters.Rescale(width=size.width, height=size.height, pillow=True))
            self.size = size

    def _add_background_color(self, name: str) -> None:
        self._lay_on("background_color", name, self.size, under=True)

    def _add_fill(self, name: str, transparent: str = "false") -> None:
        size = Size(self.asked.width or self.size.width, self.asked.height or self.size.height)
        self._lay_on("fill", name, size, under=is_true(transparent))

    def _lay_on(self, filter_: str, name: str, size: Size, *, under: bool) -> None:
        kind: dict[str, Any] = {"kind": "color", "color": None}
        opaque = True
        if name == "auto":
            kind = {"kind": "mean"}
        elif name == "blur" and filter_ == "fill":
            kind = {"kind": "blur", "sigma": truncated_blur(_GROUND_RADIUS, _GROUND_RADIUS).sigma}
            opaque = not self.alpha
        else:
            color = color_of(filter_, name)
            kind["color"] = color
            opaque = color is not None and color.alpha == 255
        left, top = ((outer - inner) // 2 for outer, inner in zip(size, self.size, strict=True))
        ground = thumbor_filters.Ground(
            width=size.width, height=size.height, left=left, top=top, under=under and self.alpha, **kind
        )
        self.alpha = not opaque or (self.alpha and not under)
        if size != self.size or ground.under:
            self.steps.append(ground)
        self.size = size

    def _add_round_corner(
        self, radii: str, red: str, green: str, blue: str, transparent: str = "false"
    ) -> None:
        across, _, down = radii.partition("|")
        color: Color | None = Color(*(min(255, int(channel)) for channel in (red, green, blue)))
        if is_true(transparent) and self.keeps_alpha:
            color, self.alpha = None, True
        self.steps.append(
            thumbor_filters.RoundCorners(
                across=int(across),
                down=int(down or across),
                background=color,
                keeps_alpha=self.alpha and color is not None,
            )
        )

    def _add_watermark(
        self, url: str, x: str, y: str, alpha: str, across: str = "none", down: str = "none"
    ) -> None:
        fade = min(255, 255 * int(alpha) // 100)
        if fade == 255:
            return
        width, height = (
            max(1, round(side * int(ratio) / 100)) if ratio != "none" and int(ratio) > 0 else None
            for ratio, side in zip((across, down), self.size, strict=True)
        )
        if url not in self.watermarks:
            raise impossible("watermark", "its URL is not in the table of watermarks")
        mark = placed_watermark(
            self.watermarks[url],
            1,
            _distance(x, self.size.width),
            _distance(y, self.size.height),
            width=width,
            height=height,
            fade=fade,
        )
        assert mark is not None
        self.steps.append(thumbor_filters.Mark(watermark=mark))


def impossible(name: str, why: str) -> DialectError:
    """Return the error for a filter that cannot be applied."""
    return DialectError(f"Filter '{name}' of thumbor cannot be applied: {why}.")


def color_of(filter_: str, text: str) -> Color | None:
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
