"""Steps of the filters that only dialects ask for."""

from __future__ import annotations

import attrs

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.seen import Sides
from imgsvc_core.plan.steps.base import Step
from imgsvc_core.spec import Color
from imgsvc_core.spec.color import WHITE
from imgsvc_core.spec.effects import Ground, RoundCorners


@attrs.frozen
class MapTones(Step):
    """Replace the levels of each channel by those of a table."""

    red: bytes
    green: bytes
    blue: bytes

    @property
    def text(self) -> str:
        return "tone table"

    def joined(self, following: Step) -> Step | None:
        if not isinstance(following, MapTones):
            return None
        return MapTones(
            self.red.translate(following.red),
            self.green.translate(following.green),
            self.blue.translate(following.blue),
        )

    @property
    def brings_color(self) -> bool:
        return len({self.red, self.green, self.blue}) > 1


@attrs.frozen
class LayOnGround(Step):
    """Lay the picture on a ground; what lies beyond its edges is cut off."""

    ground: Ground

    @property
    def text(self) -> str:
        what = str(self.ground.color or "nothing") if self.ground.kind == "color" else self.ground.kind
        return f"lay on {what} at {self.ground.left}, {self.ground.top}"

    def size_after(self, before: Size) -> Size:
        return Size(self.ground.width, self.ground.height)

    def box_after(self, box: Box, before: Size) -> Box:
        return box.shifted(self.ground.left, self.ground.top)

    @property
    def rereads(self) -> bool:
        """Return True if the ground comes from the picture's own pixels."""
        return self.ground.kind != "color"

    @property
    def copies(self) -> float:
        return 3 if self.ground.kind == "blur" else 0

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.ground.color,) if self.ground.kind == "color" else ()


@attrs.frozen
class CutCorners(Step):
    """Round the corners by quarters of an ellipse."""

    corners: RoundCorners

    @property
    def text(self) -> str:
        return f"round corners of radius {self.corners.across}, {self.corners.down}"

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (self.corners.background,)


@attrs.frozen
class LayFrame(Step):
    """Lay a nine-patch frame over the picture, on white with the space that it asks for on each side."""

    id: str
    padding: Sides

    rereads = True
    copies = 4  # of its colors and alpha, in parts of levels
    brings_color = True

    @property
    def text(self) -> str:
        return f"lay frame '{self.id}' over the picture"

    def size_after(self, before: Size) -> Size:
        left, top, right, bottom = self.padding
        return Size(before.width + left + right, before.height + top + bottom)

    def box_after(self, box: Box, before: Size) -> Box:
        return box.shifted(*self.padding[:2])

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        return (WHITE,)


@attrs.frozen
class DropAlpha(Step):
    """Leave transparency out, whatever color is under it."""

    removes_alpha = True

    @property
    def text(self) -> str:
        return "leave transparency out"
