"""Arguments of filters of imagor: colors, and places on the picture."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from imgsvc_core.spec import Color
from imgsvc_core.spec.color import BLACK
from imgsvc_core.spec.watermark import Tiling
from imgsvc_urls.dialects.building import Side
from imgsvc_urls.dialects.colors import css_color
from imgsvc_urls.dialects.imagor.path import Filter
from imgsvc_urls.errors import DialectError

_NEWER_NAMES = ("rebeccapurple",)  # than SVG 1.1
_DIGITS = re.compile(r"[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8}")
_EDGES: Mapping[str, Side] = {
    "left": "near",
    "top": "near",
    "right": "far",
    "bottom": "far",
    "center": "center",
}
_BEYOND = re.compile(r"(left|l|right|r|top|t|bottom|b)-([0-9]{1,6})")


def color_of(text: str) -> Color:
    """Return an opaque color by its name or its digits, black for anything else."""
    return attrs.evolve(known_color(text) or BLACK, alpha=255)


def known_color(text: str) -> Color | None:
    """Return a color by its name in SVG 1.1, or by 3, 6 or 8 digits, of which wrong ones count as 0."""
    if not _DIGITS.fullmatch(text):
        from PIL import ImageColor

        if text in ImageColor.colormap and text not in _NEWER_NAMES:
            return css_color(text)
        text = re.sub(rb"[^0-9a-f]", b"0", text.encode("utf-8", "surrogatepass")).decode()
    return css_color(text) if _DIGITS.fullmatch(text) else None


def impossible(name: str, why: str, *, status: int = 400) -> DialectError:
    """Return the error for a filter that cannot be applied."""
    return DialectError(f"Filter '{name}' of imagor cannot be applied: {why}.", status=status)


def distance_of(text: str, side: int) -> tuple[Side | Tiling, int]:
    """Return from where a position of a watermark is measured and how far it is, or how it is repeated."""
    if text == "repeat":
        return "start", 0
    if text in _EDGES:
        return _EDGES[text], 0
    if beyond := _BEYOND.fullmatch(text):
        return "near" if beyond[1][0] in "lt" else "far", -int(beyond[2])
    item = Filter("", (text.removesuffix("p"),))
    value = item.number()
    if text.endswith("p"):
        pixels = int(value * side / 100)
    else:
        pixels = int(value * side) if text.lstrip("-").startswith("0.") else item.whole()
    return ("far", -pixels) if pixels < 0 else ("near", pixels)
