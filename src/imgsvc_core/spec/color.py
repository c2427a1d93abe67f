"""Colors as requests write them: RGB, RRGGBB or AARRGGBB, with or without ``#``, in any case."""

from __future__ import annotations

import re

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core._runtime.records import frozen

_HEX = pattern(r"#?(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE | re.ASCII)


@frozen
class Color:
    """An sRGB color with alpha, 0 to 255 each; alpha 255 is opaque."""

    red: int
    green: int
    blue: int
    alpha: int = 255

    def __attrs_post_init__(self) -> None:
        channels = (self.red, self.green, self.blue, self.alpha)
        if not all(channel in range(256) for channel in channels):
            raise ValueError(f"Color channels must be integers within 0 to 255 range, got {channels}")

    @classmethod
    def parse(cls, text: str) -> Color:
        """Return the color of a hexadecimal notation.

        Raises:
            ValueError: the text is not such a notation.

        >>> Color.parse("#f80")
        Color(red=255, green=136, blue=0, alpha=255)
        """
        if not _HEX.fullmatch(text):
            raise ValueError(text)
        digits = text.removeprefix("#")
        if len(digits) == 3:
            digits = "".join(2 * digit for digit in digits)
        alpha, red, green, blue = bytes.fromhex(digits.rjust(8, "f"))
        return cls(red, green, blue, alpha)

    def __str__(self) -> str:
        """Return RRGGBB, or AARRGGBB if the color is not opaque."""
        rgb = f"{self.red:02X}{self.green:02X}{self.blue:02X}"
        return rgb if self.alpha == 255 else f"{self.alpha:02X}{rgb}"

    @property
    def rgb(self) -> tuple[int, int, int]:
        """Return red, green and blue."""
        return self.red, self.green, self.blue

    @property
    def gray(self) -> bool:
        """Return True if the three channels are equal."""
        return self.red == self.green == self.blue


BLACK = Color(0, 0, 0)
WHITE = Color(255, 255, 255)
TRANSPARENT = Color(0, 0, 0, 0)
