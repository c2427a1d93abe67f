"""The filters of a URL of imagor that change pixels, in their order, as filters of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import attrs

from imgsvc_core.errors import SpecError
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Filter as Step
from imgsvc_core.spec import thumbor_filters
from imgsvc_core.spec.color import TRANSPARENT
from imgsvc_core.spec.internal import GaussianBlur, LightnessSharpen, Mosaic
from imgsvc_core.spec.vips_filters import Modulate
from imgsvc_urls.dialects.building import LARGEST_SIGMA, libvips_blur, placed_watermark
from imgsvc_urls.dialects.imagor.arguments import color_of, distance_of, impossible, known_color
from imgsvc_urls.dialects.imagor.geometry import LARGEST
from imgsvc_urls.dialects.imagor.path import NOT_ACCEPTABLE, Filter, Parts, address, split_overlay
from imgsvc_urls.dialects.imagor.writing import label_of, text_of
from imgsvc_urls.dialects.thumbor.tones import table

IMPOSSIBLE = ("trim",)

_CLEAR = ("none", "transparent")
_BLURRED = 50.0  # sigma of the ground of fill(blur)
_LARGEST_SHARPEN, _USUAL_SHARPEN = 10, 0.5
_CELL = 10
GRAYSCALE = Modulate(saturation=0)
_BLENDS = {"mask": "dest-in", "mask-out": "dest-out"}  # of all others the names are the same
_ANGLES = (90, 180, 270)


@attrs.define
class Drawing:
    """The picture after some filters: its size, whether it may be transparent, and what they do.

    Args:
        size: the size that it has so far.
        asked: the size that fill goes by.
        padding: what fill adds at the left, top, right and bottom.
        watermarks: the ids of watermarks by their URLs.
        alpha: whether pixels may be transparent.
        animated: whether there are several frames.
        overlay: returns the id of a picture that is laid over, and what `thumbor_filters.Mark` says of it.
    """

    size: Size
    asked: Size
    padding: tuple[int, int, int, int]
    watermarks: Mapping[str, str]
    alpha: bool
    animated: bool
    overlay: Callable[[Parts], tuple[str, dict[str, Any]]]
    lies: bool = False
    steps: list[Step] = attrs.field(factory=list)

    def add_all(self, filters: Iterable[Filter]) -> None:
        """Add what filters do; those that do not change pixels do nothing here."""
        for item in filters:
            if item.name in IMPOSSIBLE:
                raise impossible(item.name, "there is no such operation")
            add = getattr(self, f"_add_{item.name}", None)
            if add is not None:
                try:
                    add(item)
                except SpecError as error:
                    raise impossible(item.name, error.message, status=NOT_ACCEPTABLE) from error

    @classmethod
    def draws(cls, item: Filter) -> bool:
        """Return True if a filter changes pixels."""
        return hasattr(cls, f"_add_{item.name}")

    def _tones(self, *tones: Callable[[int], float]) -> None:
        red, green, blue = map(table, tones if len(tones) == 3 else tones * 3)
        self.steps.append(thumbor_filters.Tones(red=red, green=green, blue=blue))

    def _add_brightness(self, item: Filter) -> None:
        shift = item.number() * 255 / 100
        self._tones(lambda level: level + shift)

    def _add_contrast(self, item: Filter) -> None:
        amount = max(-255.0, min(item.number() * 255 / 100, 255.0))
        factor = 259 * (amount + 255) / (255 * (259 - amount))
        if item.arguments:
            self._tones(lambda level: factor * level + 128 - factor * 128)

    def _add_rgb(self, item: Filter) -> None:
        if len(item.arguments) == 3:
            red, green, blue = (item.number(place) * 255 / 100 for place in range(3))
            self._tones(lambda level: level + red, lambda level: level + green, lambda level: level + blue)

    def _add_invert(self, item: Filter) -> None:
        self._tones(lambda level: 255 - level)

    def _add_grayscale(self, item: Filter) -> None:
        self.steps.append(GRAYSCALE)

    def _add_saturation(self, item: Filter) -> None:
        self.steps.append(Modulate(saturation=max(0.0, 1 + item.number() / 100)))

    def _add_hue(self, item: Filter) -> None:
        self.steps.append(Modulate(hue=item.number()))

    def _add_modulate(self, item: Filter) -> None:
        if len(item.arguments) == 3:
            lightness, chroma = (max(0.0, 1 + item.number(place) / 100) for place in (0, 1))
            self.steps.append(Modulate(brightness=lightness, saturation=chroma, hue=item.number(2)))

    def _add_blur(self, item: Filter) -> None:
        sigma = item.number(1) if len(item.arguments) == 2 else item.number() / 2
        if sigma > 0 and not self.animated and len(item.arguments) < 3:
            if sigma > LARGEST_SIGMA:
                raise impossible("blur", f"its sigma must be at most {LARGEST_SIGMA}", status=NOT_ACCEPTABLE)
            self.steps.append(GaussianBlur(sigma=libvips_blur(sigma).sigma, unweighted=self.alpha))

    def _add_sharpen(self, item: Filter) -> None:
        count = len(item.arguments)
        amount = item.number(1 if count in (2, 3) else 0) if 0 < count < 4 else 0.0
        sigma = 1 + 2 * amount
        sigma = sigma if sigma <= _LARGEST_SHARPEN else _USUAL_SHARPEN  # as libvips takes it
        if sigma > 0 and not self.animated:
            self.steps.append(LightnessSharpen(sigma=sigma, bend=1.0, jagged=2.0))

    def _add_pixelate(self, item: Filter) -> None:
        cell = item.whole() if item.whole() > 0 else _CELL
        if cell > 1:
            width, height = (max(1, (side + cell // 2) // cell) * cell for side in self.size)
            self._resample(Size(max(width, self.size.width), max(height, self.size.height)))
            self.steps.append(Mosaic(cell=min(cell, max(self.size))))
            self._lay(Size(width, height), 0, 0, under=False, color=None)

    def _add_rotate(self, item: Filter) -> None:
        if (angle := item.whole()) in _ANGLES:  # counterclockwise
            self.steps.append(thumbor_filters.QuarterTurn(angle=360 - angle))
            if angle != 180:
                self.size = Size(self.size.height, self.size.width)
                self.lies = not self.lies

    def _add_proportion(self, item: Filter) -> None:
        factor = min(item.number(), 100.0)
        factor = factor / 100 if factor > 1 else factor
        width, height = (int(side * factor) for side in self.size)
        if width > 0 and height > 0:
            shrink = max(self.size.width / width, self.size.height / height)
            self._resample(Size(*(max(1, int(side / shrink + 0.5)) for side in self.size)))

    def _resample(self, size: Size) -> None:
        if size != self.size:
            self.steps.append(thumbor_filters.Rescale(width=size.width, height=size.height))
            self.size = size

    def _add_crop(self, item: Filter) -> None:
        if len(item.arguments) < 4:
            return
        sides = (*self.size, *self.size)
        left, top, width, height = (
            value * side if 0 < (value := item.number(place)) < 1 else value
            for place, side in enumerate(sides)
        )
        left, top = max(0.0, min(left, self.size.width)), max(0.0, min(top, self.size.height))
        width, height = min(width, self.size.width - left), min(height, self.size.height - top)
        if width >= 1 and height >= 1:
            self._lay(Size(int(width), int(height)), -int(left), -int(top), under=False, color=None)

    def _add_background_color(self, item: Filter) -> None:
        if self.alpha and item.arguments:
            self._lay(self.size, 0, 0, under=True, **self._ground(item.text(0)))

    def _add_fill(self, item: Filter) -> None:
        width, height, padding = *self.asked, self.padding
        if self.lies:
            left, top, right, bottom = padding
            width, height, padding = height, width, (top, left, bottom, right)
        self._fill(item.text(0), width, height, padding)

    def _add_padding(self, item: Filter) -> None:
        count = len(item.arguments)
        if count < 2:
            return
        left = top = right = bottom = item.whole(1)
        if count > 2:
            top = bottom = item.whole(2)
        if count > 4:
            right, bottom = item.whole(3), item.whole(4)
        self._fill(item.text(0), *self.size, (left, top, right, bottom))

    def _fill(self, color: str, width: int, height: int, padding: tuple[int, int, int, int]) -> None:
        left, top, right, bottom = padding
        size = Size(width + left + right, height + top + bottom)
        across, down = width - self.size.width, height - self.size.height
        left, top = int(across / 2) + left, int(down / 2) + top
        if max(size) > LARGEST or min(size) < 1:
            raise impossible("fill", f"the result would be {size.width}x{size.height}", status=NOT_ACCEPTABLE)
        if color == "blur" and not self.animated:
            sigma = libvips_blur(_BLURRED).sigma * self.size.width / size.width
            self._lay(size, left, top, under=True, kind="blur", sigma=sigma)
        else:
            self._lay(size, left, top, under=color not in _CLEAR, **self._ground(color))

    def _ground(self, name: str) -> dict[str, Any]:
        if name == "auto":
            return {"kind": "mean"}
        if name in _CLEAR:
            return {"color": None}
        return {"color": color_of(name.lower().removeprefix("#"))}

    def _lay(self, size: Size, left: int, top: int, *, under: bool, **kind: Any) -> None:
        """Lay the picture on a ground."""
        covered = 0 >= left >= size.width - self.size.width and 0 >= top >= size.height - self.size.height
        under = under and self.alpha
        if size != self.size or (left, top) != (0, 0) or under:
            ground = thumbor_filters.Ground(
                width=size.width, height=size.height, left=left, top=top, under=under, **kind
            )
            self.steps.append(ground)
        clear = kind.get("kind", "color") == "color" and kind["color"] is None
        self.alpha = (self.alpha and not under) or (clear and not covered)
        self.size = size

    def _add_round_corner(self, item: Filter) -> None:
        if not item.arguments:
            return
        across, down = (
            max(0, min(item.whole(place), max(self.size))) for place in (0, len(item.arguments) > 1)
        )
        color = self._ground(item.text(2)).get("color") if len(item.arguments) == 3 else None
        self.steps.append(thumbor_filters.RoundCorners(across=across, down=down, background=color))
        self.alpha = self.alpha or color is None

    def _add_watermark(self, item: Filter) -> None:
        if not item.arguments:
            return
        url = address(item.text(0))
        if url not in self.watermarks:
            raise impossible("watermark", "its URL is not in the table of watermarks")
        width = height = None
        if len(item.arguments) >= 6:
            width, height = (
                side if item.text(place) == "none" else max(1, side * item.whole(place) // 100)
                for place, side in zip((4, 5), self.size, strict=True)
            )
        self._lay_over(item, self.watermarks[url], width=width, height=height)

    def _add_image(self, item: Filter) -> None:
        if item.arguments:
            id, made = self.overlay(split_overlay(item.text(0), self.size))
            blend = item.text(4).lower()
            blend = _BLENDS.get(blend, blend)
            self._lay_over(
                item, id, **made, blend=blend if blend in get_args(thumbor_filters.Blend) else "over"
            )

    def _add_text(self, item: Filter) -> None:
        self._write(text_of(item, self.size))

    def _add_label(self, item: Filter) -> None:
        self._write(label_of(item, self.size))

    def _write(self, made: thumbor_filters.Inscription | None) -> None:
        if made is not None:
            self.steps.append(made)

    def _lay_over(
        self, item: Filter, id: str, *, width: int | None = None, height: int | None = None, **how: Any
    ) -> None:
        mark = placed_watermark(
            id,
            1 - max(0.0, item.number(3)) / 100,
            distance_of(item.text(1), self.size.width),
            distance_of(item.text(2), self.size.height),
            width=width,
            height=height,
        )
        if mark is not None:
            self.steps.append(thumbor_filters.Mark(watermark=mark, **how))
            self.alpha = self.alpha or how.get("blend", "over") != "over"


def plane(parts: Parts) -> tuple[str, ImageInfo] | None:
    """Return the drawing of a plain color and its facts, if the image is one such as ``color:red``."""
    kind, _, name = parts.image.partition(":")
    if kind.lower() != "color":
        return None
    name = name.strip().lower().removeprefix("#")
    color = TRANSPARENT if name in _CLEAR else known_color(name)
    if color is None:
        return None
    width, height = (
        min(side, LARGEST) for side in (parts.width or parts.height or 1, parts.height or parts.width or 1)
    )
    area = f'width="{width}" height="{height}"'
    fill = f'fill="#{bytes(color.rgb).hex()}" fill-opacity="{color.alpha / 255:.4f}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {area}><rect {area} {fill}/></svg>'
    facts = ImageInfo(
        format="svg", width=width, height=height, colorspace="srgb", bytes=len(svg), alpha=color.alpha < 255
    )
    return svg, facts
