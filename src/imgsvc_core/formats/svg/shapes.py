"""Bounds of the sizes of lengths, transforms, view boxes and shapes in an SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from imgsvc_core.formats.svg.size import length_in_pixels, view_box

_EM = 12.0
"""Pixels of an em if no font size is stated, of libvips."""
_NUMBER = re.compile(r"[-+]?(?:\d*\.\d+|\d+\.?)(?:e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_FUNCTION = re.compile(r"(?<!\w)(\w++)\s*+\(([^()]*+)\)")
_FREE = re.compile(r"[mlhvcsqta]|A")
"""Commands of a path with relative coordinates, and arcs, which leave the box around their ends."""


def numbers(text: str) -> list[float]:
    """Return all numbers in a text."""
    return [float(number) for number in _NUMBER.findall(text)]


def length(text: str | None, whole: float, default: float, em: float = _EM) -> float:
    """Return a length in pixels; percent are of ``whole``, and what is not understood is infinite."""
    if text is None:
        return default
    if text.strip().endswith("%"):
        return abs(next(iter(numbers(text)), math.inf)) / 100 * whole
    return length_in_pixels(text, em)


def growth(transform: str) -> float:
    """Return the square of how much longer a transform makes lines at most."""
    most = 1.0
    for name, arguments in _FUNCTION.findall(transform):
        values, kind = numbers(arguments), name.lower()
        if "%" in arguments:
            values = [value / 100 for value in values]
        if kind == "matrix" and len(values) == 6:
            most *= _longest(*values[:4])
        elif kind.startswith("scale") and values:
            most *= max(1.0 if kind != "scale" else 0.0, *(value * value for value in values))
        elif kind.startswith("skew"):
            most *= _skewed(arguments, values)
    return most


def _longest(a: float, b: float, c: float, d: float) -> float:
    """Return the square of the larger singular value of a matrix."""
    squares, determinant = a * a + b * b + c * c + d * d, a * d - b * c
    return (squares + math.sqrt(max(0.0, squares * squares - 4 * determinant * determinant))) / 2


def _skewed(arguments: str, values: list[float]) -> float:
    if "rad" in arguments or "turn" in arguments:
        return math.inf
    most = 1.0
    for value in values:
        most *= _longest(1, 0, math.tan(math.radians(value)), 1)
    return most


def fitting(attributes: Mapping[str, str], width: float, height: float) -> float:
    """Return the square of the scale from a view box to a viewport of this size; 1 without a view box."""
    box_width, box_height = view_box(attributes.get("viewBox", ""))
    if not box_width or not box_height:
        return 1.0
    across, down = width / box_width, height / box_height
    kept = attributes.get("preserveAspectRatio", "")
    larger = "none" in kept or "slice" in kept
    return float((max(across, down) if larger else min(across, down)) ** 2)


def area(name: str, attributes: Mapping[str, str], width: float, height: float) -> float:
    """Return the area of the box around a shape at most, in a viewport of this size; 0 for other elements."""
    diagonal = math.hypot(width, height)

    def side(key: str, whole: float) -> float:
        return length(attributes.get(key), whole, 0.0)

    if name == "rect":
        return side("width", width) * side("height", height)
    if name == "circle":
        return 4 * side("r", diagonal) ** 2
    if name == "ellipse":
        across, down = (attributes.get(key) for key in ("rx", "ry"))
        return 4 * length(across or down, diagonal, 0.0) * length(down or across, diagonal, 0.0)
    if name in ("polygon", "polyline"):
        found = numbers(attributes.get("points", ""))
        return _box(found[0::2], found[1::2])
    if name == "path":
        return _path(attributes.get("d", ""))
    return 0.0


def _box(xs: list[float], ys: list[float]) -> float:
    return (max(xs) - min(xs)) * (max(ys) - min(ys)) if xs and ys else 0.0


def _path(data: str) -> float:
    """Return a bound that does not follow each command of a path."""
    found = numbers(data)
    if not _FREE.search(data):
        return (max(found) - min(found)) ** 2 if found else 0.0
    width_and_height = sum(map(abs, found)) * (2 if "a" in data.lower() else 1)
    return (width_and_height / 2) ** 2
