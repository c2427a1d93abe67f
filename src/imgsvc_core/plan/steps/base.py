"""What all steps have in common, and a step at its place in a plan."""

from __future__ import annotations

import abc

import attrs

from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Color
from imgsvc_core.spec.color import TRANSPARENT


class Step(abc.ABC):
    """Base of the steps, which are immutable."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """Say what the step does."""

    def why(self, before: Size) -> str:
        """Say why a frame of the size before it needs the step. Empty if the request says it all."""
        return ""

    def size_after(self, before: Size) -> Size:
        """Return the size of a frame after the step."""
        return before

    def box_after(self, box: Box, before: Size) -> Box:
        """Return where a rectangle of a frame lies after the step."""
        return box

    def joined(self, following: Step) -> Step | None:
        """Return one step that does the work of this and the next one, or None if no step can."""
        return None

    @property
    def idle(self) -> bool:
        """Return True if the step changes nothing."""
        return False

    @property
    def rereads(self) -> bool:
        """Return True if the step needs pixels more than once or out of order."""
        return False

    @property
    def copies(self) -> float:
        """Return how many copies of the frame the step holds in memory, beyond the one that it rereads."""
        return 0

    @property
    def copies_before(self) -> float:
        """Return how many copies of the frame before it, as it was decoded, the step holds in memory."""
        return 0

    @property
    def backgrounds(self) -> tuple[Color | None, ...]:
        """Return the colors that the step puts beside the picture; None is transparent."""
        return ()

    @property
    def brings_color(self) -> bool:
        """Return True if the step can make a gray picture colored."""
        return any(not (color or TRANSPARENT).gray for color in self.backgrounds)

    @property
    def stylizes(self) -> bool:
        """Return True if the step may leave as few colors as graphics have, even of a photograph."""
        return False

    @property
    def brings_alpha(self) -> bool:
        """Return True if the step makes pixels transparent."""
        return any((color or TRANSPARENT).alpha < 255 for color in self.backgrounds)

    @property
    def removes_alpha(self) -> bool:
        """Return True if no pixel is transparent after the step."""
        return False


@attrs.frozen
class PlannedStep:
    """A step, its phase in the order of the contract, and the size of a frame before and after it."""

    phase: str
    step: Step
    before: Size
    after: Size
