"""How much memory librsvg needs at most to draw the line with the most dashes of an SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from xml.parsers import expat

import attrs

from imgsvc_core.formats.svg.layers import plain_style
from imgsvc_core.formats.svg.shapes import fitting, growth, length, numbers

_DASH = 700  # bytes: 140 in `benchmarks.memory_bound`, 450 in a thousand lines upon each other
_ROUND_DASH = 40_000  # whose ends are round, with many corners: measured in lines of 2000 pixels
_DECLARATION = re.compile(r"(?<![\w-])([\w-]++)\s*+:([^;{}]*)")
_COMMAND = re.compile(r"([MLHVCSQTAZ])([^MLHVCSQTAZ]*)", re.IGNORECASE)
_NUMBER = r"[\s,]*+([-+]?(?:\d*\.\d+|\d+\.?)(?:e[-+]?\d+)?)"
_ARC = re.compile(_NUMBER * 3 + r"[\s,]*+([01])[\s,]*+([01])" + _NUMBER * 2, re.ASCII | re.IGNORECASE)
_NUMBERS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7}
_SMOOTH = {"S": "CS", "T": "QT"}
"""Commands whose first control point mirrors the last one of these commands."""

_CONCERNING_ALL = ("stroke-linecap", "vector-effect")

_Point = complex


@attrs.frozen
class _Drawn:
    """An element, the mean length of its dashes with their gaps, and how much longer its lines become."""

    kind: str
    style: Mapping[str, str]
    period: float
    scale: float


def dash_bytes(markup: bytes, width: int, height: int) -> int:
    """Return the most bytes that the dashes of one line need in a drawing of this size, in pixels.

    Lines are drawn one after the other. What a style sheet declares is taken to concern all of them. If the
    stroke of any does not scale, the dashes of all are taken to keep their lengths on longer lines.
    """
    diagonal = math.hypot(width, height)
    periods = [math.inf]  # mean lengths of a dash with its gap in the elements around
    scales = [1.0]
    drawn: list[_Drawn] = []
    declared: list[tuple[str, str]] = []
    sheets: list[str] = []
    in_sheet = False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal in_sheet
        kind = name.rpartition(":")[2]
        in_sheet = kind == "style"
        style = {**attributes, **_declarations(attributes.get("style", ""))}
        periods.append(_period(style.get("stroke-dasharray", "inherit"), diagonal, periods[-1]))
        scales.append(scales[-1] * _scale(kind, style, width, height))
        declared.extend((name, style[name]) for name in _CONCERNING_ALL if name in style)
        drawn.append(_Drawn(kind, style, periods[-1], scales[-1]))

    def text(characters: str) -> None:
        if in_sheet:
            sheets.append(characters)

    def end(_: str) -> None:
        nonlocal in_sheet
        in_sheet = False
        periods.pop()
        scales.pop()

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    with suppress(expat.ExpatError, ValueError, LookupError):  # librsvg refuses what comes after damage, too
        parser.Parse(markup, True)
    shortest, grown = math.inf, 1.0
    for name, value in _DECLARATION.findall(plain_style("".join(sheets))):
        match name.lower():
            case "stroke-dasharray":
                shortest = min(shortest, _period(value, diagonal, math.inf))
            case "transform":
                grown *= max(1.0, math.sqrt(growth(value)))
        declared.append((name.lower(), value))
    if ("vector-effect", "non-scaling-stroke") in {(name, _plain(value)) for name, value in declared}:
        grown *= max((item.scale for item in drawn if item.kind == "use"), default=1.0)
    else:
        grown = 0.0
    dashes = max(
        (
            outline(item.kind, item.style, width, height) * max(1.0, grown * item.scale) / period
            for item in drawn
            if (period := min(item.period, shortest)) < math.inf
        ),
        default=0.0,
    )
    round_ends = ("stroke-linecap", "round") in {(name, _plain(value)) for name, value in declared}
    return int(dashes * (_ROUND_DASH if round_ends else _DASH)) if math.isfinite(dashes) else 0


def _scale(kind: str, style: Mapping[str, str], width: int, height: int) -> float:
    """Return how much longer an element makes the lines in it at most."""
    scale = math.sqrt(growth(style.get("transform", "")))
    if kind in ("svg", "symbol"):
        scale *= math.sqrt(fitting(style, width, height))
    return max(1.0, scale)


def _plain(value: str) -> str:
    return value.partition("!")[0].strip().lower()


def outline(kind: str, attributes: Mapping[str, str], width: float, height: float) -> float:
    """Return the length of the line around a shape at most; 0 for other elements."""

    def side(key: str, whole: float) -> float:
        return length(attributes.get(key), whole, 0.0)

    match kind:
        case "rect":
            return 2 * (side("width", width) + side("height", height))
        case "circle":
            return 2 * math.pi * side("r", math.hypot(width, height))
        case "ellipse":
            return 2 * math.pi * max(side("rx", width), side("ry", height))
        case "line":
            across = side("x1", width) + side("x2", width)
            return across + side("y1", height) + side("y2", height)
        case "polyline" | "polygon":
            found = numbers(attributes.get("points", ""))
            corners = [*map(complex, found[::2], found[1::2])]
            return _length([*corners, *corners[:1]])
        case "path":
            return sum(map(_length, _segments(attributes.get("d", ""))))
    return 0.0


def _declarations(style: str) -> dict[str, str]:
    return {name.lower(): value.strip() for name, value in _DECLARATION.findall(plain_style(style))}


def _period(dashes: str, diagonal: float, inherited: float) -> float:
    """Return the mean length of a dash with its gap; infinite for a line without dashes."""
    dashes = _plain(dashes)
    if dashes == "inherit":
        return inherited
    lengths = [length(text, diagonal / math.sqrt(2), 0.0) for text in dashes.replace(",", " ").split()]
    return 2 * sum(lengths) / len(lengths) if any(lengths) else math.inf


def _length(points: list[_Point]) -> float:
    return sum(abs(after - before) for before, after in pairwise(points))


def _segments(data: str) -> Iterator[list[_Point]]:
    """Yield the points of each segment of a path: its ends, and its control points between them.

    No segment is longer than the line through its points.
    """
    here = begin = control = 0j
    before = ""
    for letter, text in _COMMAND.findall(data):
        command = letter.upper()
        if command == "Z":
            yield [here, begin]
            here = begin
        values = [float(n) for arc in _ARC.findall(text) for n in arc] if command == "A" else numbers(text)
        size = _NUMBERS.get(command, len(values) + 1)
        for at in range(0, len(values) - size + 1, size):
            origin = here if letter.islower() else 0j
            points = _points(command, values[at : at + size], origin, here)
            if command in _SMOOTH:
                points.insert(0, 2 * here - control if before in _SMOOTH[command] and before else here)
            if command != "M" or at:
                yield [here, *points]
            here, control, before = points[-1], points[-2] if len(points) > 1 else points[-1], command
            if command == "M" and not at:
                begin = here


def _points(command: str, values: list[float], origin: _Point, here: _Point) -> list[_Point]:
    """Return where a segment goes: control points and the end."""
    match command:
        case "H":
            return [complex(origin.real + values[0], here.imag)]
        case "V":
            return [complex(here.real, origin.imag + values[0])]
        case "A":
            end = origin + complex(*values[5:])
            # Radii that are too small grow until the arc reaches its end.
            radius = max(abs(values[0]), abs(values[1]), abs(end - here) / 2)
            return [here + math.pi * radius, end]
    return [origin + complex(*values[at : at + 2]) for at in range(0, len(values), 2)]
