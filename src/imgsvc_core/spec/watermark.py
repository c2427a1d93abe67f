"""A picture laid over the picture."""

from typing import ClassVar, Literal

from imgsvc_core.spec.declare import Operation, declared, param
from imgsvc_core.spec.geometry import OFFSET, PIXELS, Edge
from imgsvc_core.spec.kinds import Integer, Number, Text
from imgsvc_core.spec.rules import Needs, NotTogether, Rule

Tiling = Literal["start", "centered", "spread"]


@declared
class Watermark(Operation):
    """Lay a watermark over the picture; it is never enlarged.

    Without gravity and position it is centered. A watermark larger than the picture is clipped, unless
    ``fit`` is set. ``width`` and ``height`` apply after ``scale``.
    """

    rules: ClassVar[tuple[Rule, ...]] = (NotTogether(("gravity",), ("x", "y")), Needs("padding", "gravity"))

    id: str = param("Id of the watermark picture.", Text(4096), kw_only=False)
    gravity: Edge | None = param(
        "Edge or corner of the picture where it lies; the center by default.", default=None
    )
    padding: int | None = param(
        "Distance from the edges that gravity names; none by default.", PIXELS, unit="pixels", default=None
    )
    x: int | None = param(
        "Exact position of its left edge, instead of gravity.", OFFSET, unit="pixels", default=None
    )
    y: int | None = param(
        "Exact position of its top edge, instead of gravity.", OFFSET, unit="pixels", default=None
    )
    opacity: float = param("Factor of its own opacity.", Number(0.01, 1), default=1.0)
    scale: float = param("Factor by which it is reduced.", Number(0.01, 1), default=1.0)
    width: int | None = param("Largest width.", PIXELS, unit="pixels", default=None)
    height: int | None = param("Largest height.", PIXELS, unit="pixels", default=None)
    fit: bool = param(
        "Whether a watermark is reduced if it is larger than the picture, or than the space right of x "
        "and below y.",
        default=False,
    )
    fade: int = param("Levels taken off its alpha.", Integer(0, 255), default=0, internal=True)
    enlarge: bool = param("Whether width and height also enlarge it.", default=False, internal=True)
    offset_x: int = param(
        "Distance from the side edge that gravity names, inwards, or from the center to the right; between "
        "its tiles if there are any.",
        OFFSET,
        unit="pixels",
        default=0,
        internal=True,
    )
    offset_y: int = param(
        "Distance from the top or bottom edge that gravity names, inwards, or from the center down; between "
        "its tiles if there are any.",
        OFFSET,
        unit="pixels",
        default=0,
        internal=True,
    )
    past_center: bool = param(
        "Whether the center is computed for a picture of one more pixel, and rounded half to even.",
        default=False,
        internal=True,
    )
    tiles_x: Tiling | None = param(
        "How it is repeated across the picture: from the left edge, from the center to both sides, or as "
        "often as it fits, with equal distances.",
        default=None,
        internal=True,
    )
    tiles_y: Tiling | None = param("The same down the picture.", default=None, internal=True)
    chessboard: bool = param(
        "Whether every other tile is left out, like the white squares of a chessboard.",
        default=False,
        internal=True,
    )
    rotation: float = param(
        "Angle by which it is turned clockwise, at its size.",
        Number(-360, 360),
        unit="degrees",
        default=0.0,
        internal=True,
    )
