"""Several changes of color as one: a matrix on red, green and blue, and an offset."""

from __future__ import annotations

from typing import Self

import attrs

from imgsvc_core.plan.color.constants import LUMA_WEIGHTS
from imgsvc_core.plan.color.matrices import IDENTITY, RGB, Matrix, mix, multiply, saturation, scale
from imgsvc_core.spec.internal import ColorMatrix

_MIDDLE = 128 / 255
_WHITE = 255


@attrs.frozen
class ColorChange:
    """A change of colors, whose result is clipped only at the end. White is 1 in all channels."""

    matrix: Matrix = IDENTITY
    offset: tuple[float, ...] = (0.0, 0.0, 0.0)

    def then(self, matrix: Matrix, offset: tuple[float, ...], share: float = 1.0) -> Self:
        """Return the change with another one after it, of which only a share has an effect."""
        moved = (row[0] for row in multiply(matrix, tuple((value, 0.0, 0.0) for value in self.offset)))
        sums = (first + second for first, second in zip(moved, offset, strict=True))
        return type(self)(
            mix(self.matrix, multiply(matrix, self.matrix), share),
            tuple(old + share * (new - old) for old, new in zip(self.offset, sums, strict=True)),
        )

    def brighter(self, amount: float) -> Self:
        """Return the change with an amount added to all channels after it."""
        return self.then(IDENTITY, (amount,) * 3)

    def with_contrast(self, factor: float) -> Self:
        """Return the change with all distances from middle gray multiplied after it."""
        return self.then(scale(IDENTITY, factor), (_MIDDLE * (1 - factor),) * 3)

    def saturated(self, factor: float) -> Self:
        """Return the change with all distances from gray multiplied after it."""
        return self.then(saturation(100 * (factor - 1)), (0.0, 0.0, 0.0))

    def toned(self, dark: RGB, light: RGB, share: float) -> Self:
        """Return the change with black and white replaced by two colors after it, and grays between them."""
        ranges = [(high - low) / _WHITE for low, high in zip(dark, light, strict=True)]
        matrix = tuple(scale((LUMA_WEIGHTS,), value)[0] for value in ranges)
        return self.then(matrix, tuple(value / _WHITE for value in dark), share)

    @property
    def filters(self) -> tuple[ColorMatrix, ...]:
        """The filter that makes the change, or none if nothing changes."""
        if self == type(self)():
            return ()
        red, green, blue = ((*row, value) for row, value in zip(self.matrix, self.offset, strict=True))
        return (ColorMatrix(red=red, green=green, blue=blue),)
