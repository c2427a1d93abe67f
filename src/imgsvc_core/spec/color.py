"""Colours as requests write them: RGB, RRGGBB or AARRGGBB, with or without ``#``, in any case."""

from __future__ import annotations

import re

import attrs

_HEX = re.compile(r"#?(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE | re.ASCII)


def _channel() -> int:
    value: int = attrs.field(validator=[attrs.validators.ge(0), attrs.validators.le(255)])
    return value


@attrs.frozen(order=True)
class Color:
    """An sRGB colour with alpha, 0 to 255 each; alpha 255 is opaque."""

    red: int = _channel()
    green: int = _channel()
    blue: int = _channel()
    alpha: int = attrs.field(default=255, validator=[attrs.validators.ge(0), attrs.validators.le(255)])

    @classmethod
    def parse(cls, text: str) -> Color:
        """The colour of a hexadecimal notation.

        Raises:
            ValueError: the text is no such notation.

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
        """RRGGBB, or AARRGGBB where it is not opaque."""
        rgb = f"{self.red:02X}{self.green:02X}{self.blue:02X}"
        return rgb if self.alpha == 255 else f"{self.alpha:02X}{rgb}"

    @property
    def rgb(self) -> tuple[int, int, int]:
        """Red, green and blue."""
        return self.red, self.green, self.blue

    @property
    def gray(self) -> bool:
        """Whether the three channels are equal."""
        return self.red == self.green == self.blue


WHITE = Color(255, 255, 255)
TRANSPARENT = Color(0, 0, 0, 0)
