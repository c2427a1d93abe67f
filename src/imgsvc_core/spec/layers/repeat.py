"""A layer that is repeated all over the picture."""

from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.kinds import Number
from imgsvc_core.spec.length import DISTANCE, Length


@declared
class Repeat(Operation):
    """Fill the picture with copies in both directions. One of them lies at the layer's own place."""

    spacing: Accepts[Length, Length | int | str] = param(
        "Space between the copies, each with the room of its shadow; percent are of the picture's shorter "
        "side.",
        DISTANCE,
        unit="pixels",
        default=Length(0),
    )
    stagger: float = param(
        "How far every second row is moved to the right, as a fraction of the distance between two copies.",
        Number(0, 1),
        default=0.0,
    )
