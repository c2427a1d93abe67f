"""Requests for screens of another pixel density."""

from __future__ import annotations

import math
from typing import Any

from imgsvc_core.spec.declare import Operation, params
from imgsvc_core.spec.parsing import unparse_operation
from imgsvc_core.spec.request import OPERATIONS, PHASES, Spec

_SCALED = tuple(name for name in OPERATIONS if PHASES.index(name) > PHASES.index("crop"))


def at_density(spec: Spec, density: float) -> Spec:
    """Multiply all sizes in pixels by a density, except those of the crop, which are pixels of the source.

    Raises:
        SpecError: sizes become too large.

    >>> at_density(Spec(resize={"width": 400}), 1.5).resize.width
    600
    """
    if density == 1:
        return spec
    parts: dict[str, Any] = dict(spec.operations())
    scaled = {name: _scaled(part, density) for name, part in parts.items() if name in _SCALED}
    return Spec(**{**parts, **scaled}, filter=spec.filter)


def _scaled(part: Operation, density: float) -> dict[str, Any]:
    """Return the JSON object of an operation with its sizes multiplied."""
    sizes = {
        name: _rounded(size, density)
        for name, param in params(type(part)).items()
        if param.unit == "pixels" and (size := getattr(part, param.attribute)) is not None
    }
    return unparse_operation(part) | sizes


def _rounded(size: int, density: float) -> int:
    """Return a size that is at least one pixel unless it was none."""
    rounded = math.floor(size * density + 0.5)
    return max(rounded, 1) if size > 0 else rounded
