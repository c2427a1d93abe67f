"""Lengths in pixels, or in percent of something that the plan knows."""

from __future__ import annotations

import math
import re
from typing import Any

from imgsvc_core._runtime.records import frozen
from imgsvc_core.spec.kinds import Kind

_PERCENT = re.compile(r"-?[0-9]{1,5}(?:\.[0-9]{1,6})?%")


@frozen
class Length:
    """A number of pixels, or a share of another length in percent."""

    amount: float
    percent: bool = False

    def of(self, whole: float) -> float:
        """Return the length in pixels, not rounded. ``whole`` is what 100 percent are."""
        return self.amount * whole / 100 if self.percent else self.amount

    def pixels(self, whole: float) -> int:
        """Return the length in whole pixels, halves rounded up."""
        return math.floor(self.of(whole) + 0.5)

    def times(self, density: float) -> Length:
        """Return the length for another density of pixels. A share stays as it is."""
        if self.percent:
            return self
        return Length(scaled_pixels(self.amount, density))

    def __str__(self) -> str:
        return f"{self.amount:.6f}".rstrip("0").rstrip(".") + "%" * self.percent


@frozen
class LengthKind(Kind):
    """Pixels as a whole number, or percent as a text such as ``12%``."""

    minimum: int
    maximum: int
    least: int
    most: int

    @property
    def expectation(self) -> str:
        percent = f"percentage within {self.least}% to {self.most}% range"
        return f"integer within {self.minimum} to {self.maximum} range or {percent}"

    def parse(self, value: object) -> Length:
        if isinstance(value, Length):
            length = value
        elif isinstance(value, str) and _PERCENT.fullmatch(value):
            length = Length(float(value[:-1]) + 0.0, percent=True)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(value)
        else:
            length = Length(value + 0)  # turns -0.0 into 0.0; an int may be too large for a float
        low, high = (self.least, self.most) if length.percent else (self.minimum, self.maximum)
        if not low <= length.amount <= high or not (length.percent or float(length.amount).is_integer()):
            raise ValueError(value)
        return length

    def unparse(self, value: Length) -> Any:
        return str(value) if value.percent else int(value.amount)

    def schema(self) -> dict[str, Any]:
        pixels = {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}
        return {"anyOf": [pixels, {"type": "string", "pattern": f"^{_PERCENT.pattern}$"}]}


def scaled_pixels(length: float, density: float) -> int:
    """Return a length in whole pixels for another density. A length above zero stays at least one pixel."""
    pixels = math.floor(length * density + 0.5)
    return max(pixels, 1) if length > 0 else pixels


SIDE = LengthKind(1, 65_535, 0, 1000)
DISTANCE = LengthKind(0, 65_535, 0, 1000)
PLACE = LengthKind(-65_535, 65_535, -1000, 1000)
