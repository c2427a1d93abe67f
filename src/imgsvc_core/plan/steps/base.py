"""The base of all steps, and a step at its place in a plan."""

from __future__ import annotations

import abc
from collections.abc import Iterable

import attrs

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Color
from imgsvc_core.spec.color import TRANSPARENT


@frozen(kw_only=True)
class Traits:
    """The facts of a step for the compiler, besides the size.

    Args:
        rereads: the step needs pixels more than once or out of order.
        settles: the frame is in memory before the step if an earlier such step worked on it.
        in_array: the step also works on an array without alpha.
        copies: how many copies of the frame the step holds in memory, beyond the one that it rereads.
        drawn: how many bytes of what it draws over the frame it holds in memory, until the next such step.
        buffers: how many bytes of buffers it takes for a frame of any size. Later steps take the same ones.
        keeps: how many bytes the step holds in memory until the end.
        copies_before: how many decoded copies of the frame before it the step holds in memory.
        brings_color: the step can make a gray picture colored.
        brings_alpha: the step makes pixels transparent.
        removes_alpha: no pixel is transparent after the step.
        stylizes: the step may leave as few colors as graphics have, even of a photograph.
    """

    rereads: bool = False
    settles: bool = False
    in_array: bool = False
    copies: float = 0
    keeps: int = 0
    copies_before: float = 0
    drawn: int = 0
    buffers: int = 0
    brings_color: bool = False
    brings_alpha: bool = False
    removes_alpha: bool = False
    stylizes: bool = False

    def on(self, colors: Iterable[Color | None]) -> Traits:
        """Return the traits of a step that also puts colors beside the picture; None is transparent."""
        shown = [color or TRANSPARENT for color in colors]
        return attrs.evolve(
            self,
            brings_color=self.brings_color or not all(color.gray for color in shown),
            brings_alpha=self.brings_alpha or any(color.alpha < 255 for color in shown),
        )


PLAIN = Traits()
"""The traits of a step that works line by line."""


class Step:
    """Base of the steps, which are immutable."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """Return what the step does."""

    def why(self, before: Size) -> str:
        """Return why a frame of this size needs the step, or an empty text if the request tells it."""
        return ""

    def size_after(self, before: Size) -> Size:
        """Return the size of a frame after the step."""
        return before

    def box_after(self, box: Box, before: Size) -> Box:
        """Return the place of a rectangle of a frame after the step."""
        return box

    def joined(self, following: Step) -> Step | None:
        """Return one step that does the work of this step and the next, or None if no step can."""
        return None

    @property
    def idle(self) -> bool:
        """Return True if the step changes nothing."""
        return False

    @property
    def traits(self) -> Traits:
        """Return the facts for the compiler."""
        return PLAIN


@frozen
class PlannedStep:
    """A step, its phase in the order of the contract, and the size of a frame before and after it."""

    phase: str
    step: Step
    before: Size
    after: Size
    traits: Traits = attrs.field(init=False, eq=False, repr=False)

    @traits.default
    def _traits_of_step(self) -> Traits:
        return self.step.traits
