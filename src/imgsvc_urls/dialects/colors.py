"""Colors as other services write them."""

from __future__ import annotations

import re

from imgsvc_core.spec import Color
from imgsvc_core.spec.color import TRANSPARENT

_HEX = re.compile(r"#?(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE | re.ASCII)
_NAME = re.compile(r"[a-z]{3,20}|(?:rgba?|hsla?)\([0-9 %,./-]+\)", re.IGNORECASE | re.ASCII)


def css_color(text: str) -> Color:
    """Return the color that a text names as CSS does, or by hexadecimal digits with alpha at their end.

    Raises:
        ValueError: there is no such color.

    >>> css_color("ff000080")
    Color(red=255, green=0, blue=0, alpha=128)
    """
    if _HEX.fullmatch(text):
        digits = text.removeprefix("#")
        if len(digits) < 6:
            digits = "".join(2 * digit for digit in digits)
        red, green, blue, *alpha = bytes.fromhex(digits)
        return Color(red, green, blue, *alpha)
    if text == "transparent":
        return TRANSPARENT
    if not _NAME.fullmatch(text):
        raise ValueError(text)
    from PIL import ImageColor

    return Color(*ImageColor.getrgb(text))
