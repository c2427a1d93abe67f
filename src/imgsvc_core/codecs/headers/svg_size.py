"""The size that the root element of an SVG states, as far as it is certain without librsvg."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from xml.parsers import expat

_FIRST_PIECE = 1 << 12
_DAMAGE = (expat.ExpatError, ValueError, LookupError)
_SIZE = r"\+?(?:\d*\.)?\d+(?:e[+-]?\d+)?"
_LENGTH = re.compile(rf"\s*(?:auto|({_SIZE})([a-z%]*))\s*", re.ASCII | re.IGNORECASE)
_VIEW_BOX = re.compile(rf"\s*(?:-?{_SIZE}[\s,]+){{2}}({_SIZE})[\s,]+({_SIZE})\s*", re.ASCII | re.IGNORECASE)
_PIXELS = {"": 1.0, "px": 1.0, "pt": 1.0, "pc": 12.0, "mm": 72 / 25.4, "cm": 72 / 2.54, "in": 72.0, "%": 0.0}
_EMS = {"em": 1.0, "ex": 0.5, "ch": 0.5}
_FONT_SIZE = "12"
"""libvips' font size of a document that states none."""
_MOST_NUMBER = 3.4e38
"""The largest number of librsvg, which takes a longer length as not stated."""
_STYLES = ("style", "xml-stylesheet")


def states_side_beyond(markup: bytes, most: int) -> bool:
    """Return True if the root element certainly makes a side longer than ``most`` pixels, at 72 dpi.

    It is not certain if style sheets may state another size, or if the XML is damaged.
    """
    root = _root_attributes(markup)
    return most < max(_sides(root)) < _MOST_NUMBER and "style" not in root and not _may_be_styled(markup)


class _RootFoundError(Exception):
    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes


def _root_attributes(markup: bytes) -> dict[str, str]:
    """Return the attributes of the root element, reading no further. Empty if the XML before is damaged."""

    def start(name: str, attributes: dict[str, str]) -> None:
        raise _RootFoundError(attributes)

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    begin, end = 0, _FIRST_PIECE
    try:
        while begin < len(markup):
            parser.Parse(markup[begin:end], end >= len(markup))
            begin, end = end, 2 * end  # doubled, as expat reads a tag from its start with each piece of it
    except _RootFoundError as root:
        return root.attributes
    except _DAMAGE:
        pass
    return {}


def _may_be_styled(markup: bytes) -> bool:
    """Return True if the document has a style sheet, or damage that could hide one."""
    found: list[str] = []

    def note(name: str, _: object) -> None:
        if name.rpartition(":")[2] in _STYLES:
            found.append(name)

    parser = expat.ParserCreate()
    parser.StartElementHandler = note
    parser.ProcessingInstructionHandler = note
    try:
        parser.Parse(markup, True)
    except _DAMAGE:
        return True
    return bool(found)


def _sides(root: Mapping[str, str]) -> tuple[float, float]:
    """Return width and height in pixels: 0 if the drawing decides, infinite if only librsvg can tell."""
    em = length_in_pixels(root.get("font-size", _FONT_SIZE), em=math.inf) or math.inf
    width, height = (length_in_pixels(root.get(name, "auto"), em) for name in ("width", "height"))
    if width and height:
        return width, height
    box_width, box_height = view_box(root.get("viewBox", ""))
    if not box_width or not box_height:
        return 0, 0
    if width:
        return width, width * box_height / box_width
    if height:
        return height * box_width / box_height, height
    return box_width, box_height


def length_in_pixels(length: str, em: float) -> float:
    """Return a length in pixels: 0 if it depends on what is drawn, infinite if it is not understood."""
    match = _LENGTH.fullmatch(length)
    if match is None:
        return math.inf
    number, unit = float(match[1] or 0), (match[2] or "").lower()
    return number * (_EMS[unit] * em if unit in _EMS else _PIXELS.get(unit, math.inf))


def view_box(view_box: str) -> tuple[float, float]:
    """Return the width and height of a ``viewBox``; 0 and 0 if it is wrong."""
    match = _VIEW_BOX.fullmatch(view_box)
    return (float(match[1]), float(match[2])) if match else (0, 0)
