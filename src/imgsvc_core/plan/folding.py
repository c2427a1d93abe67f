"""Fold any stack of pointwise color steps into the fewest tables and matrices.

`fold` turns steps into blocks, and the meaning of a block is exact: its input lies in [0, 1], its steps are
applied one after the other to real numbers without rounding or clamping, and its output is clamped to [0, 1]
once. So values that a step pushes out of range can come back within the same block, but not after it. The
borders of the blocks follow from the kinds of the steps alone:

- adjacent curves are one `LutBlock`;
- adjacent matrices are one `MatrixBlock`; vibrance and isolate start one of their own, because their
  per-pixel weight is measured on clamped colors, and the matrices after them join it;
- duotone needs only luma: the matrices before it shrink to the one row that gives it (clamped), and what
  follows is a function of one number, a `ToneBlock`;
- on a gray picture everything is a function of one number, hence one `ToneBlock`.

``invert`` commutes with vibrance and with every matrix whose rows sum to 1, also through the clamping,
which is symmetric about 1/2. It moves before them, where it joins the curves.
"""

from __future__ import annotations

from collections.abc import Iterable

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan.color import matrices
from imgsvc_core.plan.color.constants import LUMA_WEIGHTS
from imgsvc_core.plan.color.matrices import Matrix
from imgsvc_core.plan.color.steps import (
    ColorStep,
    CurveStep,
    DuotoneStep,
    IsolateStep,
    MatrixStep,
    VibranceStep,
)

_INVERT = CurveStep("invert")
_TOLERANCE = 1e-9


@frozen
class LutBlock:
    """Curves, applied to each channel by one table."""

    steps: tuple[CurveStep, ...]

    @property
    def summary(self) -> str:
        """Describe the block for people."""
        return f"LUT of {_labels(self.steps)}"


@frozen
class MatrixBlock:
    """``fixed @ x + weight(x) * (scaled @ x)`` with the weight of vibrance or isolate; or ``fixed @ x``.

    With a single row the result has one band.
    """

    steps: tuple[ColorStep, ...]
    fixed: Matrix
    scaled: Matrix | None = None
    weight: VibranceStep | IsolateStep | None = None

    @property
    def summary(self) -> str:
        """What the block holds, for people."""
        held = "matrix of " + (_labels(self.steps) or "luma")
        if isinstance(self.weight, VibranceStep):
            return f"{held}, weighted by chroma"
        return f"{held}, weighted by nearness to the color" if self.weight else held


@frozen
class DuotoneBlock:
    """The colors of duotone at a luma; always inside a `ToneBlock`."""

    step: DuotoneStep

    @property
    def summary(self) -> str:
        """What the block holds, for people."""
        return self.step.label


@frozen
class ToneBlock:
    """Any blocks, applied to a gray picture of one band by one table.

    The result has three bands if ``color`` is set, else one.
    """

    blocks: tuple[Block, ...]
    color: bool

    @property
    def summary(self) -> str:
        """What the block holds, for people."""
        return "tone LUT of " + "; ".join(block.summary for block in self.blocks)


Block = LutBlock | MatrixBlock | DuotoneBlock | ToneBlock


def fold(steps: Iterable[ColorStep], *, gray: bool = False) -> tuple[Block, ...]:
    """Return the blocks to apply to a picture with three color channels, or to a gray one.

    Steps that change nothing are left out. Without any blocks the pixels stay as they are.
    """
    active = [step for step in steps if not step.neutral]
    if not gray:
        return _fold_color(_early_invert(active))
    toned = _without_gray_fixing(active)
    if not toned:
        return ()
    color = any(step.brings_color for step in toned)
    return (ToneBlock(_fold_color(_early_invert(toned)), color),)


def _early_invert(steps: list[ColorStep]) -> list[ColorStep]:
    """Move every invert before the steps that it commutes with, unless it can join curves after it."""
    ordered: list[ColorStep] = []
    for index, step in enumerate(steps):
        place = len(ordered)
        joins_next = index + 1 < len(steps) and isinstance(steps[index + 1], CurveStep)
        if step == _INVERT and not joins_next:
            while place and _commutes_with_invert(ordered[place - 1]):
                place -= 1
        ordered.insert(place, step)
    return ordered


def _commutes_with_invert(step: ColorStep) -> bool:
    return isinstance(step, VibranceStep) or (isinstance(step, MatrixStep) and step.fixes_gray)


def _without_gray_fixing(steps: list[ColorStep]) -> list[ColorStep]:
    """Leave out steps that do not change a gray picture, up to the first step that brings color into it."""
    kept: list[ColorStep] = []
    for index, step in enumerate(steps):
        if step.brings_color:
            return kept + steps[index:]
        if not step.fixes_gray:
            kept.append(step)
    return kept


def _fold_color(steps: list[ColorStep]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for index, step in enumerate(steps):
        last = blocks[-1] if blocks else None
        if isinstance(step, DuotoneStep):
            if isinstance(last, MatrixBlock):
                blocks[-1] = _product((LUMA_WEIGHTS,), last)
            else:
                blocks.append(MatrixBlock((), (LUMA_WEIGHTS,)))
            tones = (DuotoneBlock(step), *_fold_color(steps[index + 1 :]))
            return (*blocks, ToneBlock(tones, color=True))
        if isinstance(step, CurveStep):
            if isinstance(last, LutBlock):
                blocks[-1] = LutBlock((*last.steps, step))
            else:
                blocks.append(LutBlock((step,)))
        elif isinstance(step, MatrixStep):
            if isinstance(last, MatrixBlock):
                blocks[-1] = _product(step.matrix, last, step)
            else:
                blocks.append(MatrixBlock((step,), step.matrix))
        else:
            blocks.append(MatrixBlock((step,), matrices.LUMA, matrices.CHROMA, step))
    return tuple(blocks)


def _product(matrix: Matrix, block: MatrixBlock, *added: ColorStep) -> MatrixBlock:
    """Return the block followed by a matrix. A weighted part that the matrix cancels is left out."""
    steps = (*block.steps, *added)
    fixed = matrices.multiply(matrix, block.fixed)
    scaled = block.scaled and matrices.multiply(matrix, block.scaled)
    if scaled and max(abs(number) for row in scaled for number in row) > _TOLERANCE:
        return MatrixBlock(steps, fixed, scaled, block.weight)
    return MatrixBlock(steps, fixed)


def _labels(steps: tuple[ColorStep, ...]) -> str:
    return ", ".join(step.label for step in steps)
