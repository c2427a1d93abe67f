"""Requests for other pixel densities, and for results of another width."""

from __future__ import annotations

from typing import Any, TypeVar

from imgsvc_core.errors import invalid
from imgsvc_core.spec.declare import Operation, Parameters, all_params, params
from imgsvc_core.spec.frame import Canvas
from imgsvc_core.spec.geometry import Resize
from imgsvc_core.spec.length import Length, scaled_pixels
from imgsvc_core.spec.parsing import unparse_operation
from imgsvc_core.spec.request import OPERATIONS, Spec

_P = TypeVar("_P", bound=Parameters)

_SCALED = tuple(OPERATIONS)[tuple(OPERATIONS).index("crop") + 1 :]


def at_density(spec: Spec, density: float) -> Spec:
    """Multiply all sizes in pixels by a density, except in the crop, which counts pixels of the source.

    Raises:
        SpecError: sizes become too large.

    >>> at_density(Spec(resize={"width": 400}), 1.5).resize.width
    600
    """
    if density == 1:
        return spec
    scaled = {name: _scaled(part, density) for name, part in spec.operations() if name in _SCALED}
    return _changed(spec, **scaled, layers=[_layer_scaled(item, density) for item in spec.layers])


def at_width(spec: Spec, width: int) -> Spec:
    """Ask for a result of a width in pixels, padding and border included.

    If the request has a width, all its sizes in pixels are multiplied, except in the crop. The result
    is narrower if a height of the request does not allow the width, and wider if the canvas has a ratio.

    Raises:
        SpecError: padding and border leave no room for the picture, or sizes become too large.

    >>> sized = at_width(Spec(resize={"width": 380}, border={"size": 10}), 800)
    >>> sized.resize.width, sized.border.size
    (760, 20)
    """
    spec = _without_factor(spec)
    resized, canvas = (_width(part) for part in (spec.resize, spec.canvas))
    if resized or canvas:
        spec = at_density(spec, width / (max(resized, canvas) + _around(spec)))
    inner = width - _around(spec)
    if inner < 1 <= width:
        message = f"Padding and border of {_around(spec)} pixels leave no room in a width of {width}"
        raise invalid("widths", message)
    changes: dict[str, Any] = {}
    if canvas > resized:
        changes["canvas"] = _with_width(spec.canvas, inner)
    if canvas <= resized or not resized:
        changes["resize"] = _with_width(spec.resize, inner)
    return _changed(spec, **changes)


def with_upscale(spec: Spec, *, upscale: bool) -> Spec:
    """Set whether a present `resize` enlarges a smaller picture. If not, `scale` does not either."""
    if not upscale and spec.scale is not None and spec.scale.size > 1:
        spec = _without_factor(spec)
    if spec.resize is None:
        return spec
    return _changed(spec, resize=_changed(spec.resize, upscale=upscale))


def _without_factor(spec: Spec) -> Spec:
    """Multiply the sizes of `resize` by the factor of `scale`, which would change the width afterwards."""
    if spec.scale is None:
        return spec
    resize = spec.resize and _scaled(spec.resize, spec.scale.size)
    scale = spec.scale.ratio and {"size": 1, "ratio": spec.scale.ratio}
    return _changed(spec, resize=resize, scale=scale)


def _changed(part: _P, **values: Any) -> _P:
    """Return a request, or a part of it, with other values of some parameters."""
    present = {item.attribute: getattr(part, item.attribute) for item in all_params(type(part)).values()}
    return type(part)(**present | values)


def _width(part: Resize | Canvas | None) -> int:
    return (part and part.width) or 0


def _with_width(part: Resize | Canvas | None, width: int) -> dict[str, Any]:
    return (unparse_operation(part) if part else {}) | {"width": width}


def _around(spec: Spec) -> int:
    """Return how many pixels padding and border add to the width."""
    _, right, _, left = spec.padding.sides if spec.padding else (0, 0, 0, 0)
    return left + right + 2 * (spec.border.size if spec.border else 0)


def _scaled(part: Operation, density: float) -> dict[str, Any]:
    """Return the JSON object of an operation with its sizes multiplied."""
    sizes = {
        name: scaled_pixels(size, density)
        for name, param in params(type(part)).items()
        if param.unit == "pixels" and (size := getattr(part, param.attribute)) is not None
    }
    return unparse_operation(part) | sizes


def _layer_scaled(part: _P, density: float) -> _P:
    """Return a layer, or a part of it, with its lengths in pixels multiplied."""
    changed: dict[str, Any] = {}
    for item in params(type(part)).values():
        value = getattr(part, item.attribute)
        if isinstance(value, Length):
            changed[item.attribute] = value.times(density)
        elif isinstance(value, Operation):
            changed[item.attribute] = _layer_scaled(value, density)
    return _changed(part, **changed)
