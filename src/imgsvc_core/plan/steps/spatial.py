"""Steps that look beyond single pixels."""

from __future__ import annotations

from typing import Any

import attrs

from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps.base import Step
from imgsvc_core.spec import Blur, Filter, Halftone, Pixellate, params
from imgsvc_core.spec.effects import WaveletSharpen
from imgsvc_core.spec.internal import ColorMatrix, ColorOverlay, Mosaic
from imgsvc_core.spec.vips_filters import ChromaTint, Threshold, WithoutWhite


class _Neighbors(Step):
    """A step that looks beyond single pixels."""

    __slots__ = ()

    rereads = True

    @property
    def copies(self) -> float:
        return 1.5

    def why(self, before: Size) -> str:
        return "in a pass of its own, as it looks beyond single pixels"


@attrs.frozen
class Sharpen(_Neighbors):
    """Strengthen or soften fine detail."""

    value: int

    @property
    def text(self) -> str:
        return f"sharpen {self.value}"


@attrs.frozen
class Unsharp(_Neighbors):
    """Strengthen local contrast."""

    value: int

    @property
    def text(self) -> str:
        return f"unsharp {self.value}"


@attrs.frozen
class ApplyFilter(_Neighbors):
    """A filter that looks at neighbors or positions."""

    filter: Filter

    @property
    def copies(self) -> float:
        """Return the copies of the filters that hold most of them: zoom blur, wavelets, and the others."""
        if isinstance(self.filter, WaveletSharpen):
            return 10
        return 4 if isinstance(self.filter, Blur) and self.filter.mode == "zoom" else 1.5

    @property
    def brings_color(self) -> bool:
        if isinstance(self.filter, ColorOverlay):
            return not self.filter.color.gray
        return isinstance(self.filter, ChromaTint | ColorMatrix)

    @property
    def brings_alpha(self) -> bool:
        return isinstance(self.filter, WithoutWhite)

    @property
    def stylizes(self) -> bool:
        return isinstance(self.filter, Pixellate | Halftone | Mosaic | Threshold)

    @property
    def text(self) -> str:
        values: list[Any] = [f"{name} {getattr(self.filter, name)}" for name in params(type(self.filter))]
        if isinstance(self.filter, Blur) and self.filter.mode != "motion":
            values.pop()  # the angle means nothing here
        return ", ".join([self.filter.key, *values])
