"""Parts of a picture that the result must not show."""

from typing import ClassVar, Literal

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import HexColor
from imgsvc_core.spec.length import PLACE, SIDE, Length
from imgsvc_core.spec.rules import NotWhen, RequiredWhen, Rule

MOST_REDACTED = 100
"""The most entries of ``redact``, each of which is a box or all faces."""

Cover = Literal["color", "pixels", "blur"]
_Length = Accepts[Length | None, Length | int | str | None]
_BOX = ("x", "y", "width", "height")


@declared
class Redact(Operation):
    """Make a box or all faces of the upright source unreadable, before every other step.

    Nothing of the covered pixels gets into the result: ``pixels`` and ``blur`` take their colors from around
    the box. The part of a box that lies outside of the picture has no effect. In files with lossy
    compression, pixels beside the box can show traces of it. There the box grows to the edges of the blocks
    of pixels that it touches, and over the pixels that the codec filters or predicts from these blocks.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        RequiredWhen("faces", (False,), _BOX, default=True),
        NotWhen("faces", (True,), _BOX),
        NotWhen("faces", (False,), ("if_found",), default=True),
        NotWhen("mode", ("pixels", "blur"), ("color",)),
    )

    x: _Length = param(
        "Left edge of the box. Percent are of the picture's width.", PLACE, unit="pixels", default=None
    )
    y: _Length = param(
        "Top edge of the box. Percent are of the picture's height.", PLACE, unit="pixels", default=None
    )
    width: _Length = param(
        "Width of the box. Percent are of the picture's width.", SIDE, unit="pixels", default=None
    )
    height: _Length = param(
        "Height of the box. Percent are of the picture's height.", SIDE, unit="pixels", default=None
    )
    faces: bool = param(
        "Cover all faces in place of a box. In an animation, the faces of any frame are covered in "
        "all frames.",
        default=False,
    )
    if_found: bool = param("Accept a picture without faces, which is an error otherwise.", default=False)
    mode: Cover = param(
        "color draws one color, pixels coarse cells, blur a smooth surface. All hide the same pixels.",
        default="color",
    )
    color: Accepts[Color | None, Color | str | None] = param(
        "Color of the mode color, 000000 by default.", HexColor(alpha=False), default=None
    )
