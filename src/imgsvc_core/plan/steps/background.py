"""Steps that lay the picture on its background."""

from __future__ import annotations

import math
from math import prod

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.steps.base import Step, Traits
from imgsvc_core.spec.background import Background

_SIGMA = 0.1
"""Standard deviation of a blur of 100, in parts of the shorter side; chosen by looking at photographs."""

_SMALL_SIGMA = 4.0  # pixels; a narrower blur would let the enlargement show
_COPIES = 2
_PIXEL = 8  # bytes, 16 bits for each channel


@frozen
class MakeBackdrop(Step):
    """Make a background of the picture itself: a blurred copy, or its average color. The frame stays.

    It is made of ``part`` of the frame, and will lie below a frame of ``size``.
    """

    background: Background
    part: Box
    size: Size

    @property
    def sigma(self) -> float:
        """The standard deviation of the blur, in pixels of the frame above it."""
        return _SIGMA * min(self.size) * self.background.blur / 100

    @property
    def made(self) -> Size:
        """The size at which the copy is blurred, which needs no more pixels. It is enlarged afterwards."""
        factor = max(1.0, self.sigma / _SMALL_SIGMA)
        return Size(math.ceil(self.size.width / factor), math.ceil(self.size.height / factor))

    @property
    def text(self) -> str:
        if self.background.kind == "average":
            return "measure the average color"
        return f"blur a copy that covers {self.size.width} x {self.size.height}"

    @property
    def traits(self) -> Traits:
        blurs = self.background.kind == "blur"
        return Traits(rereads=True, keeps=_COPIES * _PIXEL * prod(self.made) if blurs else 0)


@frozen
class LayOnBackground(Step):
    """Lay the picture on its background."""

    background: Background

    @property
    def text(self) -> str:
        background = self.background
        if background.gradient is not None:
            return f"lay on a gradient from {background.start} to {background.end}"
        return {
            "color": f"lay on {background.color}",
            "blur": "lay on its blurred copy",
            "average": "lay on its average color",
        }[background.kind]

    @property
    def traits(self) -> Traits:
        colors = self.background.colors
        return Traits(
            brings_color=not all(color.gray for color in colors),
            removes_alpha=all(color.alpha == 255 for color in colors),
        )
