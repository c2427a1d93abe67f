"""Operations on the size and position of the picture."""

from __future__ import annotations

from typing import ClassVar

import attrs

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Operation, param
from imgsvc_core.spec.kinds import AspectRatio, Boolean, Choice, HexColor, Integer, Number
from imgsvc_core.spec.rules import AtLeastOne, NotTogether, NotWhen, RequiredWhen, Rule

EDGES = ("top-left", "top", "top-right", "right", "bottom-right", "bottom", "bottom-left", "left")
PIXELS = Integer(1, 65_535)
OFFSET = Integer(-65_535, 65_535)
GRAVITY = Choice((*EDGES, "center", "face", "faces", "smart"))


@attrs.frozen(kw_only=True)
class Flip(Operation):
    """Mirror the picture."""

    key: ClassVar[str] = "flip"
    title: ClassVar[str] = "Flip"

    horizontal: bool = param(Boolean(), "Exchange left and right.", default=False, neutral=False)
    vertical: bool = param(Boolean(), "Exchange top and bottom.", default=False, neutral=False)


@attrs.frozen(kw_only=True)
class Rotate(Operation):
    """Turn the picture clockwise; the frame grows to hold all of it.

    Multiples of 90 degrees move pixels without changing them.
    """

    key: ClassVar[str] = "rotate"
    title: ClassVar[str] = "Rotate"

    angle: float = param(Number(-360, 360), "Clockwise angle.", unit="degrees", neutral=0.0)
    background: Color | None = param(
        HexColor(),
        "Colour of the uncovered corners; transparent by default, white where the output has no alpha.",
        default=None,
    )


@attrs.frozen(kw_only=True)
class Crop(Operation):
    """Keep a part of the picture; a part that reaches over an edge ends at that edge."""

    key: ClassVar[str] = "crop"
    title: ClassVar[str] = "Crop"
    rules: ClassVar[tuple[Rule, ...]] = (
        RequiredWhen("mode", ("rect", "smart"), ("width", "height"), default=True),
        RequiredWhen("mode", ("ratio",), ("ratio",)),
        NotWhen("mode", ("rect",), ("ratio", "padding", "faces"), default=True),
        NotWhen("mode", ("ratio",), ("width", "height", "x", "y", "padding", "faces")),
        NotWhen("mode", ("face",), ("width", "height", "x", "y", "gravity", "ratio")),
        NotWhen("mode", ("smart",), ("x", "y", "gravity", "ratio", "padding", "faces")),
        NotTogether(("gravity",), ("x", "y")),
    )

    mode: str = param(
        Choice(("rect", "ratio", "face", "smart")),
        "How the part is chosen: a rectangle, the largest part of an aspect ratio, the faces, "
        "or the most interesting region.",
        default="rect",
    )
    width: int | None = param(PIXELS, "Width of the part.", unit="pixels", default=None)
    height: int | None = param(PIXELS, "Height of the part.", unit="pixels", default=None)
    x: int | None = param(
        Integer(0, 65_535),
        "Left edge of the part, from the left of the picture.",
        unit="pixels",
        default=None,
    )
    y: int | None = param(
        Integer(0, 65_535), "Top edge of the part, from the top of the picture.", unit="pixels", default=None
    )
    gravity: str | None = param(GRAVITY, "Where the part lies; the centre by default.", default=None)
    ratio: tuple[float, float] | None = param(AspectRatio(), "Width to height.", default=None)
    padding: float | None = param(
        Number(0, 5), "Room around the faces; 0.5 by default.", unit="face sizes", default=None
    )
    faces: str | None = param(
        Choice(("largest", "all")),
        "Which faces the part holds: the largest, as by default, or all.",
        default=None,
    )

    @property
    def around_faces(self) -> tuple[float, str]:
        """Room around the faces in sizes of them, and which faces, in mode face."""
        return 0.5 if self.padding is None else self.padding, self.faces or "largest"


@attrs.frozen(kw_only=True)
class Resize(Operation):
    """Bring the picture to a size in pixels."""

    key: ClassVar[str] = "resize"
    title: ClassVar[str] = "Resize"
    rules: ClassVar[tuple[Rule, ...]] = (
        AtLeastOne(("width", "height")),
        RequiredWhen("mode", ("fit", "fill", "stretch"), ("width", "height")),
        NotWhen("mode", ("auto", "stretch"), ("gravity", "background"), default=True),
        NotWhen("mode", ("fit",), ("background",)),
    )

    width: int | None = param(PIXELS, "Width of the box.", unit="pixels", default=None)
    height: int | None = param(PIXELS, "Height of the box.", unit="pixels", default=None)
    mode: str = param(
        Choice(("auto", "fit", "fill", "stretch")),
        "auto keeps the aspect and never exceeds the box; fit covers the box and crops the overflow; "
        "fill fits inside and pads; stretch ignores the aspect.",
        default="auto",
    )
    gravity: str | None = param(
        GRAVITY,
        "What fit keeps when it crops, and where fill puts the picture; the centre by default. For fill, "
        "which keeps all, face, faces and smart are the centre.",
        default=None,
    )
    background: Color | None = param(
        HexColor(),
        "Colour of the padding of fill; transparent by default, white where the output has no alpha.",
        default=None,
    )
    upscale: bool = param(Boolean(), "Whether a smaller picture is enlarged.", default=True)


@attrs.frozen(kw_only=True)
class Scale(Operation):
    """Multiply the size of the picture by a factor."""

    key: ClassVar[str] = "scale"
    title: ClassVar[str] = "Scale"

    size: float = param(
        Number(0.01, 10), "Factor of the width, and of the height where no ratio is given.", neutral=1.0
    )
    ratio: float | None = param(
        Number(0.01, 100), "Height of the result over its width; keeps the aspect by default.", default=None
    )

    @property
    def is_neutral(self) -> bool:
        """Whether the size stays."""
        return self.size == 1 and self.ratio is None
