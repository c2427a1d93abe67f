"""A frame on pixels that a decoder has scaled: moved in numbers of the plan, placed to parts of pixels."""

from __future__ import annotations

import math

import attrs
import pyvips

from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.pixels import geometry
from imgsvc_core.plan import Plan, turns
from imgsvc_core.plan.geometry import Area, Box, Size
from imgsvc_core.plan.loading import area_at_hand, pixels_for
from imgsvc_core.spec import Color

_NEGLIGIBLE = 1e-6  # of a pixel, by which lengths are rounded


@attrs.frozen
class ScaledFrame:
    """Pixels, the area of them that the frame is, and how many of them a pixel of the plan has each way.

    If nothing was scaled, the area is all of the pixels. ``size`` repeats what libvips says of the image,
    because asking it takes longer than planning all of this.
    """

    image: pyvips.Image
    size: Size
    area: Area
    across: float = 1.0
    down: float = 1.0

    @classmethod
    def whole(cls, image: pyvips.Image) -> ScaledFrame:
        """Return pixels that are those of the plan as a frame."""
        size = Size(*size_of(image))
        return cls(image, size, Area(0, 0, *size))

    @classmethod
    def loaded(cls, image: pyvips.Image, plan: Plan) -> ScaledFrame:
        """Return a frame as the load settings of the plan gave it."""
        info, size = plan.info, Size(*size_of(image))
        area = area_at_hand(info, plan.load.scale, *size)
        if plan.load.scale < 1:
            right, bottom = pixels_for(area.left + area.width), pixels_for(area.top + area.height)
            whole = Size(max(size.width, right), max(size.height, bottom))
            if whole != size:
                image, size = geometry.completed(image, *whole), whole
        return cls(image, size, area, area.width / info.width, area.height / info.height)

    def holding(self, image: pyvips.Image) -> ScaledFrame:
        """Return the frame with other colors, or in memory."""
        return attrs.evolve(self, image=image)

    def turned(self, orientation: int) -> ScaledFrame:
        """Return the frame mirrored and turned by quarters."""
        image, size = geometry.turn(self.image, orientation), turns.turned(self.size, orientation)
        area = turns.turned_area(self.area, self.size, orientation)
        across, down = (self.down, self.across) if orientation >= 5 else (self.across, self.down)
        return ScaledFrame(image, size, area, across, down)

    def rotated(self, angle: float, background: Color | None, size: Size) -> ScaledFrame:
        """Return the frame turned by any angle, in a frame of a size."""
        scale = (self.across + self.down) / 2
        area = Area(0, 0, size.width * scale, size.height * scale)
        image = geometry.rotate(self.image, angle, background, self.area, area.width, area.height)
        return ScaledFrame(image, Size(*size_of(image)), area, scale, scale)

    def cropped(self, box: Box) -> ScaledFrame:
        """Return a rectangle, with all pixels that it has a part in."""
        area = Area(
            self.area.left + box.left * self.across,
            self.area.top + box.top * self.down,
            box.width * self.across,
            box.height * self.down,
        )
        first, columns = _touched(area.left, area.width, self.size.width)
        upper, rows = _touched(area.top, area.height, self.size.height)
        image = self.image.crop(first, upper, columns, rows)
        area = area._replace(left=area.left - first, top=area.top - upper)
        return attrs.evolve(self, image=image, size=Size(columns, rows), area=area)

    def interesting(self, size: Size, turn: int = 1) -> tuple[int, int]:
        """Return left and top, in pixels of the plan, of the most interesting part of a size.

        It is looked for in the picture as it was before a turn.
        """
        if turn != 1:
            back = turns.inverse(turn)
            before, part = self.turned(back), turns.turned(size, back)
            whole = Size(round(before.area.width / before.across), round(before.area.height / before.down))
            box = turns.turned_box(Box(*before.interesting(part), *part), whole, turn)
            return box.left, box.top
        columns, rows = max(1, round(size.width * self.across)), max(1, round(size.height * self.down))
        left, top = geometry.smart_box(self.image, columns, rows)
        return (
            _within((left - self.area.left) / self.across, self.area.width / self.across - size.width),
            _within((top - self.area.top) / self.down, self.area.height / self.down - size.height),
        )

    def resampled(
        self,
        size: Size,
        *,
        exact: bool,
        libvips: tuple[float, ...] | None = None,
        kernel: str | None = None,
    ) -> ScaledFrame:
        """Return all of it at a size, by factors and a kernel of libvips if they lead to it."""
        image, area = None, self.area
        if libvips is not None and (area.left, area.top) == (0, 0):
            # libvips leaves out the last pixels of a smaller copy if they do not stand for whole ones.
            whole = max(1, int(area.width + _NEGLIGIBLE)), max(1, int(area.height + _NEGLIGIBLE))
            across = libvips[0] * area.width / self.across / whole[0]
            down = libvips[1] * area.height / self.down / whole[1]
            image = geometry.resample_by_libvips(self.image.crop(0, 0, *whole), across, down, size, kernel)
        if image is None and not exact and area == (0, 0, *self.size):
            from imgsvc_core.pixels import reduction  # it takes NumPy to load, so some time

            image = reduction.reduced(self.image, self.size, size)
        if image is None:
            image = geometry.resample(self.image, self.size, *size, area, exact=exact)
        return ScaledFrame(image, size, Area(0, 0, *size))

    def resampled_by_pillow(self, size: Size) -> ScaledFrame:
        """Return all of it at a size, with the last pixels of a decoder of which it only has a part."""
        area = self.area
        if area.left == area.top == 0:
            area = Area(0, 0, math.ceil(area.width), math.ceil(area.height))
            image = geometry.completed(self.image, int(area.width), int(area.height))
        else:
            image = self.image
        return ScaledFrame.whole(geometry.resample_by_pillow(image, *size, area))


def _within(value: float, largest: float) -> int:
    return max(0, min(round(value), round(largest)))


def _touched(start: float, length: float, have: int) -> tuple[int, int]:
    first = min(max(math.floor(start), 0), have - 1)
    return first, min(max(math.ceil(start + length), first + 1), have) - first
