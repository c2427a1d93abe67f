"""Steps that change each pixel by itself."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.formats.rgb_space import RgbSpace
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps.base import Step, Traits
from imgsvc_core.spec import Color

if TYPE_CHECKING:
    from imgsvc_core.plan.color.steps import ColorStep
    from imgsvc_core.plan.folding import Block


@frozen
class ToSrgb(Step):
    """Convert the picture from its profile or color space to sRGB, or to gray if it is gray."""

    profile: bool
    colorspace: str
    stated: RgbSpace | None
    cmyk: str | None = None

    @property
    def text(self) -> str:
        hdr = self.stated is not None and self.stated.is_hdr
        return "convert to sRGB, HDR tone-mapped" if hdr else "convert to sRGB"

    def why(self, before: Size) -> str:
        if self.stated:
            return "the file states another RGB space"
        return "the picture has a profile" if self.profile else f"the picture is {self.colorspace}"


@attrs.frozen(slots=False)
class Recolor(Step):
    """Pointwise color operations, folded into the fewest tables and matrices.

    With ``enhance``, the corrections that the picture's own histogram asks for come first. ``gray`` says that
    the picture has one band, so that what concerns colors only is left out.
    """

    operations: tuple[ColorStep, ...] = ()
    enhance: bool = False
    gray: bool = False

    @functools.cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Return the folded operations, without the measured corrections."""
        from imgsvc_core.plan.folding import fold  # most requests leave colors as they are

        return fold(self.operations, gray=self.gray)

    @property
    def text(self) -> str:
        measured = ["corrections measured on the picture"] if self.enhance else []
        return "; ".join(measured + [block.summary for block in self.blocks])

    def why(self, before: Size) -> str:
        return "pointwise steps go together" if len(self.operations) > 1 else ""

    def joined(self, following: Step) -> Step | None:
        if not isinstance(following, Recolor):
            return None
        operations = (*self.operations, *following.operations)
        return recoloring(operations, enhance=self.enhance, gray=self.gray)

    @property
    def idle(self) -> bool:
        return not self.enhance and not self.blocks

    @functools.cached_property
    def traits(self) -> Traits:
        """Return the facts for the compiler."""
        return Traits(
            rereads=self.enhance,  # measuring a histogram takes a pass of its own
            brings_color=any(step.brings_color and not step.neutral for step in self.operations),
            stylizes=any(step.is_line for step in self.operations),
        )


@functools.lru_cache(maxsize=256)
def recoloring(operations: tuple[ColorStep, ...], *, enhance: bool, gray: bool) -> Recolor:
    """Return the step of color operations. Equal ones share a step: many pictures have one request."""
    return Recolor(operations, enhance, gray)


@frozen
class Flatten(Step):
    """Lay the picture on a color, as asked for or because of ``formats``, which have no alpha."""

    background: Color
    formats: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"lay on {self.background}"

    def why(self, before: Size) -> str:
        return f"{' and '.join(self.formats)} has no transparency" if self.formats else "as asked for"
