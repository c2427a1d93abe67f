"""Steps that put something around or over the picture."""

from __future__ import annotations

import attrs

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.steps.base import Step
from imgsvc_core.spec import Border, Color, Mask, Padding, Spec, Watermark
from imgsvc_core.spec.effects import Blend


@attrs.frozen
class ApplyMask(Step):
    """Cut to a shape."""

    mask: Mask

    @property
    def text(self) -> str:
        radius = "" if self.mask.radius is None else f" of radius {self.mask.radius}"
        return f"{self.mask.shape} mask{radius}"

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.mask.background,)


@attrs.frozen
class AddPadding(Step):
    """Add room on the sides."""

    padding: Padding

    @property
    def text(self) -> str:
        return "add {} at the top, {} right, {} bottom, {} left".format(*self.padding.sides)

    def size_after(self, before: Size) -> Size:
        top, right, bottom, left = self.padding.sides
        return Size(before.width + left + right, before.height + top + bottom)

    def box_after(self, box: Box, before: Size) -> Box:
        top, _, _, left = self.padding.sides
        return box.shifted(left, top)

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.padding.background,)


@attrs.frozen
class AddBorder(Step):
    """Draw a line around."""

    border: Border

    @property
    def text(self) -> str:
        return f"border of {self.border.size} in {self.border.color}, radius {self.border.radius}"

    def size_after(self, before: Size) -> Size:
        return Size(before.width + 2 * self.border.size, before.height + 2 * self.border.size)

    def box_after(self, box: Box, before: Size) -> Box:
        return box.shifted(self.border.size, self.border.size)

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.border.color, self.border.background) if self.border.radius else (self.border.color,)


@attrs.frozen
class LayWatermark(Step):
    """Lay a watermark over the picture, whose part below it is read beside the rest.

    ``request`` is what is done to its picture before, instead of a resize, and ``drawing`` an SVG in place
    of the picture.
    """

    watermark: Watermark
    request: Spec | None = None
    drawing: str | None = None
    blend: Blend = "over"

    rereads = True
    brings_color = True  # as it may, which shows when it is opened

    @property
    def brings_alpha(self) -> bool:
        return self.blend != "over"

    @property
    def text(self) -> str:
        return f"lay watermark '{self.watermark.id}' over the picture"
