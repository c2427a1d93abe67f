"""Filters that only code can ask for, such as dialects of URLs: JSON, flags, schemas and docs lack them.

`unparse` writes a request with them like any other. Only `restore` reads it back.
"""

from collections.abc import Mapping
from typing import Any

from imgsvc_core.spec import vips_filters  # noqa: F401  (its filters are internal ones)
from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, declared, param
from imgsvc_core.spec.filters import FILTERS, Filter
from imgsvc_core.spec.kinds import HexColor, Integer, Number, Several
from imgsvc_core.spec.parsing import restore_operation
from imgsvc_core.spec.request import ALL_OPERATIONS, LISTS, Spec
from imgsvc_core.spec.thumbor_filters import FACTOR

_LARGEST_SIDE = 65_535
_PLACE = Number(-100, 100)
_CURVE = Number(0, 1_000_000)


@declared
class GaussianBlur(Filter):
    """Blur the picture by a Gaussian."""

    sigma: float = param("Standard deviation.", Number(0, _LARGEST_SIDE), unit="pixels", neutral=0.0)
    unweighted: bool = param(
        "Whether colors are blurred as they are, also where they are transparent.", default=False
    )


@declared
class LightnessSharpen(Filter):
    """Sharpen the lightness of the picture, flat areas less than edges."""

    sigma: float = param("Standard deviation.", Number(0, _LARGEST_SIDE), unit="pixels", neutral=0.0)
    flat: float = param("Slope for differences up to the bend.", _CURVE, default=0.0)
    jagged: float = param("Slope for larger differences.", _CURVE, default=3.0)
    bend: float = param("Difference of lightness from which edges begin.", _CURVE, default=2.0)
    most_brighter: float = param("Most that is added.", _CURVE, default=10.0)
    most_darker: float = param("Most that is taken away.", _CURVE, default=20.0)


@declared
class Mosaic(Filter):
    """Show the picture in square cells from the top left. Cells over the edge are filled by mirroring."""

    cell: int = param("Side of the cells.", Integer(1, _LARGEST_SIDE), unit="pixels", neutral=1)


@declared
class ColorMatrix(Filter):
    """Replace each channel by a weighted sum of red, green and blue, plus an offset. White is 1."""

    red: tuple[float, ...] = param("Weights for red.", Several(4, FACTOR))
    green: tuple[float, ...] = param("Weights for green.", Several(4, FACTOR))
    blue: tuple[float, ...] = param("Weights for blue.", Several(4, FACTOR))


@declared
class ColorOverlay(Filter):
    """Lay a color over the picture: evenly, or as a gradient that begins transparent."""

    color: Accepts[Color, Color | str] = param("Its color.", HexColor(alpha=False))
    opacity: float = param("Its opacity, at the end of a gradient.", Number(0, 1), neutral=0.0)
    angle: float | None = param(
        "Direction of a gradient: 0 goes down, 90 to the left.",
        Number(-360, 360),
        unit="degrees",
        default=None,
    )
    start: float = param("Where a gradient begins; 0 is the first edge.", _PLACE, default=0.0)
    stop: float = param("Where it ends; 1 is the last edge.", _PLACE, default=1.0)


INTERNAL_FILTERS = tuple(item for item in Filter.__subclasses__() if item not in FILTERS)
"""All filters of this kind."""

_FILTERS = {item.key: item for item in (*FILTERS, *INTERNAL_FILTERS)}


def restore(document: Mapping[str, Any]) -> Spec:
    """Return the spec that `unparse` wrote: ``restore(unparse(spec)) == spec``, whatever is in it.

    >>> restore({"filter": [{"mosaic": {"cell": 8}}]}).filter[0].cell
    8
    """
    parts: dict[str, Any] = {
        name: restore_operation(item, document[name])
        for name, item in ALL_OPERATIONS.items()
        if name in document
    }
    filters = [
        restore_operation(_FILTERS[key], values)
        for item in document.get("filter", ())
        for key, values in item.items()
    ]
    lists: dict[str, Any] = {name: document.get(name) for name in LISTS}
    return Spec(**{**parts, **lists, "filter": filters})
