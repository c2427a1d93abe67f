"""Filters of thumbor and similar services, which only dialects ask for.

Each is applied to the result of the filter before it. Some of them also turn or scale the picture, or put
something around or over it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from imgsvc_core.spec.color import Color
from imgsvc_core.spec.declare import Accepts, Operation, declared, param
from imgsvc_core.spec.filters import Filter
from imgsvc_core.spec.geometry import OFFSET, PIXELS
from imgsvc_core.spec.kinds import HexColor, Integer, Kind, Number, Several, Text
from imgsvc_core.spec.layers import Layer
from imgsvc_core.spec.parsing import restore_operation
from imgsvc_core.spec.parts import PartKind
from imgsvc_core.spec.request import Spec, unparse
from imgsvc_core.spec.watermark import Watermark

FACTOR = Number(-1e9, 1e9)
_RADIUS = Integer(0, 1_000_000_000)
_MOST_WEIGHTS = 1024
_LEVELS = 256


class Table(Kind):
    """A byte for each of the 256 levels of a channel, in hexadecimal digits."""

    expectation = f"{2 * _LEVELS} hexadecimal digits"

    def parse(self, value: object) -> bytes:
        table = bytes.fromhex(value) if isinstance(value, str) else value
        if not isinstance(table, bytes) or len(table) != _LEVELS:
            raise ValueError(value)
        return table

    def unparse(self, value: bytes) -> str:
        return value.hex()

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^[0-9a-fA-F]{{{2 * _LEVELS}}}$"}


class _Restored(PartKind):
    """The kind of a parameter that is an operation, also with internal parameters."""

    def parse(self, value: object) -> Operation:
        if isinstance(value, Mapping):
            return restore_operation(self.operation, value)
        return super().parse(value)


class _Request(Kind):
    """The kind of a parameter that is a request of its own, also with internal parameters."""

    expectation = "request"

    def parse(self, value: object) -> Spec:
        from imgsvc_core.spec.internal import restore  # `internal` imports these filters

        if isinstance(value, Spec):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(value)
        return restore(value)

    def unparse(self, value: Spec) -> dict[str, Any]:
        return unparse(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


@declared
class Tones(Filter):
    """Replace the levels of each channel by those of a table."""

    red: Accepts[bytes, bytes | str] = param("Levels of red.", Table())
    green: Accepts[bytes, bytes | str] = param("Levels of green.", Table())
    blue: Accepts[bytes, bytes | str] = param("Levels of blue.", Table())


@declared
class Grayscale(Filter):
    """Show the luma of the picture (BT.601)."""


@declared
class RootSaturation(Filter):
    """Move colors away from the gray that is the root of their weighted squares."""

    factor: float = param("Factor of the distance.", FACTOR, neutral=1.0)


@declared
class Equalize(Filter):
    """Spread the levels of each channel evenly."""


@declared
class Noise(Filter):
    """Add gray noise."""

    amount: int = param("Range of levels.", Integer(0, 1_000_000_000), neutral=0)
    seed: int = param("Seed of the random numbers.", Integer(0, 1_000_000_000), default=0)


@declared
class Convolution(Filter):
    """Replace each pixel by a weighted sum of its neighbors, alpha too."""

    weights: tuple[float, ...] = param("Weights, row by row.", Several(None, FACTOR))
    columns: int = param("Number of columns.", Integer(1, _MOST_WEIGHTS))


@declared
class WaveletSharpen(Filter):
    """Strengthen detail of about one size, by a wavelet transform."""

    amount: float = param("Strength.", FACTOR, neutral=0.0)
    radius: float = param("Scale that is strengthened most: 0 is the finest, 4 the coarsest.", FACTOR)
    luma: bool = param("Whether colors stay as they are.", default=False)


@declared
class QuarterTurn(Filter):
    """Turn the picture clockwise."""

    angle: int = param("Angle.", Integer(0, 270), unit="degrees", neutral=0)


@declared
class Rescale(Filter):
    """Scale the picture to a size."""

    width: int = param("Width.", PIXELS, unit="pixels")
    height: int = param("Height.", PIXELS, unit="pixels")
    pillow: bool = param("See `Resize`.", default=False)


@declared
class Ground(Filter):
    """Lay the picture on a ground, and cut off the parts beyond the edges of the ground."""

    width: int = param("Width of the ground.", PIXELS, unit="pixels")
    height: int = param("Height of the ground.", PIXELS, unit="pixels")
    left: int = param("Left edge of the picture on the ground.", OFFSET, unit="pixels", default=0)
    top: int = param("Top edge of the picture on the ground.", OFFSET, unit="pixels", default=0)
    kind: Literal["color", "mean", "blur", "copy", "repeat", "mirror"] = param(
        "One color, the mean of the picture, a blurred copy of it, or its edges, tiles or mirror images "
        "around it.",
        default="color",
    )
    color: Accepts[Color | None, Color | str | None] = param(
        "The one color; transparent by default.", HexColor(), default=None
    )
    sigma: float = param("Standard deviation of the blur.", Number(0, 65_535), unit="pixels", default=0.0)
    under: bool = param("Whether the ground shows through the picture.", default=False)


@declared
class RoundCorners(Filter):
    """Round the corners by quarters of an ellipse."""

    across: int = param("Radius across.", _RADIUS, unit="pixels", neutral=0)
    down: int = param("Radius down.", _RADIUS, unit="pixels", neutral=0)
    background: Accepts[Color | None, Color | str | None] = param(
        "Color of the corners; transparent by default.", HexColor(), default=None
    )
    keeps_alpha: bool = param("Whether the color leaves alpha as it is.", default=False)


Blend = Literal[
    "over", "multiply", "color-burn", "darken", "screen", "color-dodge", "lighten", "add", "overlay",
    "soft-light", "hard-light", "difference", "exclusion", "dest-in", "dest-out",
]  # fmt: skip


@declared
class Mark(Filter):
    """Lay a watermark over the picture."""

    watermark: Accepts[Watermark, Watermark | dict[str, Any]] = param("The watermark.", _Restored(Watermark))
    request: Accepts[Spec | None, Spec | Mapping[str, Any] | None] = param(
        "What is done to its picture before, in place of what its size asks for.", _Request(), default=None
    )
    drawing: str | None = param(
        "A drawing in SVG that is laid over in place of its picture.", Text(1000), default=None
    )
    blend: Blend = param("How colors and alpha of the two are mixed.", default="over")

    @property
    def pictures(self) -> tuple[str, ...]:
        """Return the ids of the watermark, and of those that are laid over it."""
        nested = () if self.request is None else self.request.pictures
        return nested if self.drawing else (self.watermark.id, *nested)


@declared
class Inscription(Filter):
    """Write a text over the picture, in a box of what is visible of its letters."""

    layer: Accepts[Layer, Layer | Mapping[str, Any]] = param("The layer of the text.", PartKind(Layer))
    tall: int | None = param(
        "Height of the box, up to which letters become smaller.", PIXELS, unit="pixels", default=None
    )


@declared
class WithoutAlpha(Filter):
    """Make all pixels opaque, and keep the colors of transparent ones."""
