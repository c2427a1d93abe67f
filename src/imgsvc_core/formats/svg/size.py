"""The size of an SVG as browsers compute it, and the same drawing at another size.

If a drawing states no size, librsvg takes the extent of what is drawn. If a size is rounded to whole pixels,
it leaves soft edges. So the root element gets the size in whole pixels, and the part of the drawing that
fills it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape
from xml.parsers import expat

_FIRST_PIECE = 1 << 12
_DAMAGE = (expat.ExpatError, ValueError, LookupError)
_NUMBER = r"[-+]?(?:\d*\.)?\d+(?:e[+-]?\d+)?"
_LENGTH = re.compile(rf"\s*(?:auto|({_NUMBER})([a-z%]*))\s*", re.ASCII | re.IGNORECASE)
_VIEW_BOX = re.compile(
    rf"\s*(?:{_NUMBER}[\s,]+){{2}}({_NUMBER})[\s,]+({_NUMBER})\s*", re.ASCII | re.IGNORECASE
)
_PIXELS = {
    "": 1.0, "px": 1.0, "pt": 96 / 72, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "q": 96 / 101.6,
    "in": 96.0,
}  # fmt: skip
_EMS = {"em": 1.0, "rem": 1.0, "ex": 0.5, "ch": 0.5}
_FONT_SIZE = 16.0  # of browsers, if a document states none
_WIDTH, _HEIGHT = 300.0, 150.0  # of CSS for what states no size (CSS Images 3, 4.3)
_SAME_RATIO = 1e-3  # editors round sizes and view boxes
_TAG = re.compile(rb"""<([^\s"'/>]+)(?:[^"'/>]|"[^"]*"|'[^']*')*+""")
_FIT = re.compile(r"\s*(none|x(?:Min|Mid|Max)Y(?:Min|Mid|Max))\s*(meet|slice)?\s*")
_FONT_SIZES = re.compile(r"(?<![\w-])font-size\s*:([^;!]*)", re.IGNORECASE)
_BACKGROUNDS = re.compile(r"(?<![\w-])background(?:-color)?\s*:\s*([^;!]*[^;!\s])", re.IGNORECASE)
_SIDES = re.compile(r"(?<![\w-])(?:width|height)\s*:[^;]*", re.IGNORECASE)


def natural_size(markup: bytes) -> tuple[float, float]:
    """Return width and height in CSS pixels of a drawing that is shown as an image.

    As in browsers, width and height of the root element count, and not what style sheets say of them. A side
    that is not stated, or in percent, follows from the view box, or is 300 or 150. Of a drawing that has only
    a view box, browsers take the ratio alone; here it has the size of the view box.
    """
    return _size(_root(markup)[0])


def at_size(markup: bytes, width: int, height: int) -> bytes:
    """Return a drawing in UTF-8 at a size in whole pixels.

    A drawing that fills its box fills these pixels. If its view box has another ratio than the box, one side
    decides how large it is drawn, which stays the same side.
    """
    root, start = _root(markup)
    tag = _TAG.match(markup, start)
    if tag is None:
        return markup
    before, box = _size(root), _view_box(root.get("viewBox", ""))
    if all(box):
        shown = root["viewBox"]
        fit = _fit(root.get("preserveAspectRatio", ""), _scales(before, box), _scales((width, height), box))
    else:
        shown, fit = f"0 0 {before[0]!r} {before[1]!r}", "none"
    sides = f"width:{width}px!important;height:{height}px!important;"
    style = sides + _SIDES.sub("", root.get("style", ""))
    root |= {
        "width": str(width), "height": str(height), "viewBox": shown, "preserveAspectRatio": fit,
        "style": style, "font-size": root.get("font-size", f"{_FONT_SIZE:g}"),
    }  # fmt: skip
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in root.items())
    return b"".join((markup[:start], b"<", tag[1], attributes.encode(), markup[tag.end() :]))


def background(markup: bytes) -> str:
    """Return what the style of the root element says of the background, nothing if it says nothing."""
    stated: list[str] = _BACKGROUNDS.findall(_root(markup)[0].get("style", ""))
    return stated[-1] if stated else ""


class _RootFoundError(Exception):
    def __init__(self, attributes: dict[str, str], start: int) -> None:
        self.attributes = attributes
        self.start = start


def _root(markup: bytes) -> tuple[dict[str, str], int]:
    """Return the attributes of the root element, and where it starts, reading no further.

    Return no attributes if the XML before it is damaged.
    """

    def start(name: str, attributes: dict[str, str]) -> None:
        raise _RootFoundError(attributes, parser.CurrentByteIndex)

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    begin, end = 0, _FIRST_PIECE
    try:
        while begin < len(markup):
            parser.Parse(markup[begin:end], end >= len(markup))
            begin, end = end, 2 * end  # doubled, as expat reads a tag from its start with each piece of it
    except _RootFoundError as root:
        return root.attributes, root.start
    except _DAMAGE:
        pass
    return {}, 0


def _size(root: Mapping[str, str]) -> tuple[float, float]:
    em = _font_size(root)
    width, height = _stated(root, "width", em), _stated(root, "height", em)
    across, down = _view_box(root.get("viewBox", ""))
    if across and down:
        if width is None and height is None:
            return across, down
        width = height * across / down if width is None and height is not None else width
        height = width * down / across if height is None and width is not None else height
    return _WIDTH if width is None else width, _HEIGHT if height is None else height


def _font_size(root: Mapping[str, str]) -> float:
    """Return the font size of the root element in pixels, or that of browsers if it states none."""
    *_, stated = [root.get("font-size", ""), *_FONT_SIZES.findall(root.get("style", ""))]
    match = _LENGTH.fullmatch(stated)
    if match is None or not match[1]:
        return _FONT_SIZE
    pixels = float(match[1]) / 100 * _FONT_SIZE if match[2] == "%" else _pixels(match, _FONT_SIZE)
    return pixels if 0 < pixels < math.inf else _FONT_SIZE


def _stated(root: Mapping[str, str], name: str, em: float) -> float | None:
    """Return a length in pixels, at least 0, or None if the document leaves it to others."""
    match = _LENGTH.fullmatch(root.get(name, "auto"))
    if match is None or not match[1] or match[2] == "%":
        return None
    pixels = _pixels(match, em)
    return max(0.0, pixels) if math.isfinite(pixels) else None


def _scales(size: tuple[float, float], box: tuple[float, float]) -> tuple[float, float]:
    return size[0] / box[0], size[1] / box[1]


def _fit(stated: str, before: tuple[float, float], after: tuple[float, float]) -> str:
    """Return the ``preserveAspectRatio`` that keeps the fit of a view box after sides were rounded to pixels.

    As in browsers, values that are not understood, such as ``defer`` of SVG 1.1, count as the default.
    """
    match = _FIT.fullmatch(stated)
    alignment, way = match.groups() if match else ("xMidYMid", None)
    if math.isclose(*before, rel_tol=_SAME_RATIO):
        return "none"
    by_width = (before[0] < before[1]) != (way == "slice")
    meets = (after[0] < after[1]) == by_width
    return f"{alignment} {'meet' if meets else 'slice'}"


def _pixels(length: re.Match[str], em: float) -> float:
    """Return a length in pixels, or infinity or NaN if its unit is unknown."""
    unit = length[2].lower()
    return float(length[1]) * (_EMS[unit] * em if unit in _EMS else _PIXELS.get(unit, math.inf))


def _view_box(stated: str) -> tuple[float, float]:
    """Return the width and height of a ``viewBox``; 0 and 0 if it is wrong."""
    match = _VIEW_BOX.fullmatch(stated)
    sides = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
    return sides if min(sides) > 0 else (0.0, 0.0)
