"""The filters of imagor that write words."""

from __future__ import annotations

import re
from typing import Any, get_args
from urllib.parse import unquote_plus

from imgsvc_core.fonts import Font, catalog
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec.layers.layer import Mixing
from imgsvc_core.spec.thumbor_filters import Inscription
from imgsvc_urls.dialects.imagor.arguments import color_of, distance_of, impossible
from imgsvc_urls.dialects.imagor.path import Filter, address

_SAME_BLENDS = {"add": "plus-lighter"}
_SIDES_ACROSS = {"near": "left", "far": "right", "center": ""}
_SIDES_DOWN = {"near": "top", "far": "bottom", "center": ""}
_ALIGNMENTS = {"centre": "center", "center": "center", "high": "right", "right": "right"}
_DPI, _LINE_HEIGHT, _LABEL = 72, 1.2, 20
_TALLEST = 2  # sizes of letters to the height of small ones
_FAINTEST, _FARTHEST = 0.01, 65_535
_YES = ("true", "1")
_FULL = re.compile("(?:full|f)(-[0-9]{1,6})?")
_POINTS = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(?:px)?")
_USUAL_POINTS = 12.0  # of Pango


def text_of(item: Filter, size: Size) -> Inscription | None:
    """Return what ``text`` writes over a picture of a size, if anything.

    Raises:
        DialectError: its font is not known, or it is repeated in one direction.
        SpecError: it is too long, or a size is not possible.
    """
    style, points = _font_of(item, item.text(3))
    blend = item.text(6).lower()
    blend = _SAME_BLENDS.get(blend, blend)
    points *= (item.whole(12) if item.whole(12) > 0 else _DPI) / _DPI
    text = {
        **style,
        "size": points,
        "align": "justify" if item.text(9) in _YES else _ALIGNMENTS.get(item.text(8).lower(), "left"),
        "line_height": min(_LINE_HEIGHT + max(0, item.whole(11)) / max(points, 1), 5),
    }
    blend = blend if blend in get_args(Mixing) else "normal"
    return _written(item, size, text, blend=blend, width=_wrapping(item.text(7), size.width))


def label_of(item: Filter, size: Size) -> Inscription | None:
    """Return what ``label`` writes over a picture of a size, if anything.

    Its size is the height of what is visible.

    Raises:
        DialectError, SpecError: as in `text_of`.
    """
    height = item.whole(3) if len(item.arguments) > 3 else _LABEL
    style, _ = _font_of(item, item.text(6))
    if height <= 0:
        return None
    return _written(item, size, {**style, "size": height}, tall=height, scale=_TALLEST)


def _written(
    item: Filter, size: Size, text: dict[str, Any], *, tall: int | None = None, **layer: Any
) -> Inscription | None:
    """Write the first argument of a filter at the place that the next two tell."""
    opacity = 1 - max(0.0, item.number(5)) / 100
    letters = address(item.text(0))
    if not letters.strip() or opacity < _FAINTEST / 2:
        return None
    text = {**text, "size": int(text["size"] + 0.5), "text": letters, "missing": "box"}
    text["color"] = color_of(item.text(4).lower())
    (across, x), (down, y) = distance_of(item.text(1), size.width), distance_of(item.text(2), size.height)
    if (across == "start") != (down == "start"):
        raise impossible(item.name, "a text is repeated in both directions or in none")
    sides = _SIDES_DOWN.get(down, "top"), _SIDES_ACROSS.get(across, "left")
    made = {
        **layer,
        "text": text,
        "repeat": {} if across == "start" else None,
        "gravity": "-".join(filter(None, sides)) or "center",
        "x": max(-_FARTHEST, min(x, _FARTHEST)),
        "y": max(-_FARTHEST, min(y, _FARTHEST)),
        "opacity": max(opacity, _FAINTEST),
    }
    return Inscription(layer=made, tall=tall)


def _font_of(item: Filter, text: str) -> tuple[dict[str, Any], float]:
    """Return the font that a filter describes as Pango does, with hyphens for spaces, and its size in points.

    Raises:
        DialectError: the family is not known.
    """
    words = unquote_plus(text).replace("-", " ").split()
    size = _USUAL_POINTS
    if words and (found := _POINTS.fullmatch(words[-1])):
        size, words = float(found[1]), words[:-1]
    known = catalog()
    if words and words[0].lower() == "sans" and (usual := Font.parse(None, known)):
        words = [usual.family, *words[2 if words[1:2] == ["serif"] else 1 :]]
    font = " ".join(words) or None
    if Font.parse(font, known) is None:
        families = ", ".join(sorted(known.families.values())) or "none, since none is installed"
        raise impossible(item.name, f"its font must be sans or a family of {families}, got '{font}'")
    return {"font": font}, size


def _wrapping(text: str, side: int) -> int | None:
    """Return the width at which a text is wrapped, if it is."""
    item = Filter("", (text.removesuffix("p"),))
    if full := _FULL.fullmatch(text):
        width = side + int(full[1] or 0)
    elif text.endswith("p"):
        width = item.whole() * side // 100
    else:
        width = int(item.number() * side) if text.startswith("0.") else item.whole()
    return width if width > 0 else None
