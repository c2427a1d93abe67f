"""Do the steps of a plan on frames whose pixels a decoder may have scaled.

Places are in pixels of the plan, and may lie between pixels of the frame.

There is a function for each class of `imgsvc_core.plan.steps`, which the pipeline names. It takes the frame,
the step, and the state that all frames of the picture share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs
import pyvips

from imgsvc_core._runtime.deadline import in_memory
from imgsvc_core._runtime.records import frozen
from imgsvc_core._runtime.vipsimage import size_of
from imgsvc_core.pixels import colorspace, resampling, shapes
from imgsvc_core.pixels.blending import to_rgb
from imgsvc_core.pixels.channels import is_deep
from imgsvc_core.plan import Plan, steps, turns
from imgsvc_core.plan.decoding import area_at_hand, pixels_for
from imgsvc_core.plan.geometry import Area, Box, Size
from imgsvc_core.plan.steps import Step
from imgsvc_core.spec import Color

if TYPE_CHECKING:
    from imgsvc_core.pixels.layers.drawn import Drawn
    from imgsvc_core.plan.layers import Laid
    from imgsvc_core.spec.thumbor_filters import Mark

T = TypeVar("T")

Marks: TypeAlias = "Callable[[Mark | Laid, Size, int], pyvips.Image]"
"""A function that returns the picture laid over a frame of a size, while others hold some bytes."""

_NEGLIGIBLE = 1e-6  # parts of a pixel by which lengths may be rounded


@frozen
class ScaledFrame:
    """Pixels, the area of the frame on them, and the number of pixels per pixel of the plan in each
    direction.

    If nothing was scaled, the area is all of the pixels. ``size`` keeps the size of the image, because
    asking libvips takes longer than the whole plan.
    """

    image: pyvips.Image
    size: Size
    area: Area
    across: float = 1.0
    down: float = 1.0

    @classmethod
    def whole(cls, image: pyvips.Image) -> ScaledFrame:
        """Return a frame whose pixels are the pixels of the plan."""
        size = Size(*size_of(image))
        return cls(image, size, Area(0, 0, *size))

    @classmethod
    def loaded(cls, image: pyvips.Image, plan: Plan) -> ScaledFrame:
        """Return a frame as the load settings of the plan gave it."""
        info, size = plan.info, Size(*size_of(image))
        if size == (info.width, info.height):
            return cls(image, size, Area(0, 0, *size))
        area = area_at_hand(info, plan.load.scale, *size)
        if plan.load.scale < 1:
            right, bottom = pixels_for(area.left + area.width), pixels_for(area.top + area.height)
            whole = Size(max(size.width, right), max(size.height, bottom))
            if whole != size:
                image, size = resampling.completed(image, *whole), whole
        return cls(image, size, area, area.width / info.width, area.height / info.height)


@attrs.define(eq=False, repr=False)
class Run:
    """The state that the frames of a picture share: the plan, the watermarks, and measurements of the first
    frame.

    All frames use the measurements of the first, so that animations do not flicker.
    """

    plan: Plan
    marks: Marks
    measured: dict[Step, Any] = attrs.field(factory=dict)
    regions: list[tuple[int, int]] = attrs.field(factory=list)
    layers: dict[Step, Drawn] = attrs.field(factory=dict)
    backdrop: pyvips.Image | Color | None = None  # what the frame at work gave to its background
    boxes: dict[str, Box] = attrs.field(factory=dict)  # of layers, by path
    held: int = 0  # bytes of the pictures that are kept for later frames

    def once(self, step: Step, measure: Callable[[], T]) -> T:
        """Return the measurement for a step, which is made on the first frame."""
        if step not in self.measured:
            self.measured[step] = measure()
        found: T = self.measured[step]
        return found

    def picture(self, step: Step, mark: Mark | Laid, size: Size) -> pyvips.Image:
        """Return the picture that a step lays over a frame. It is kept if there are more frames."""
        if self.plan.frames == 1:
            return self.marks(mark, size, self.held)
        if step not in self.measured:
            picture = self.marks(mark, size, self.held)
            self.held += picture.width * picture.height * picture.bands * (1 + is_deep(picture))
            self.measured[step] = picture
        kept: pyvips.Image = self.measured[step]
        return kept

    def drawn(self, step: Step, draw: Callable[[], Drawn]) -> Drawn:
        """Return what a step draws over a frame. It is drawn once if there are more frames."""
        if self.plan.frames == 1:
            return draw()
        if step not in self.layers:
            made = draw()
            self.layers[step] = attrs.evolve(made, image=in_memory(made.image))
        return self.layers[step]


def turn(frame: ScaledFrame, step: steps.Turn, run: Run) -> ScaledFrame:
    """Mirror a frame and turn it by quarters."""
    return _turned(frame, step.orientation)


def rotate(frame: ScaledFrame, step: steps.RotateFreely, run: Run) -> ScaledFrame:
    """Turn a frame by any angle, in a frame of a size."""
    scale = (frame.across + frame.down) / 2
    area = Area(0, 0, step.size.width * scale, step.size.height * scale)
    image = resampling.rotate(frame.image, step.angle, step.background, frame.area, area.width, area.height)
    return ScaledFrame(image, Size(*size_of(image)), area, scale, scale)


def crop(frame: ScaledFrame, step: steps.CropBox, run: Run) -> ScaledFrame:
    """Keep a rectangle, with all pixels that it touches."""
    box = step.box
    area = Area(
        frame.area.left + box.left * frame.across,
        frame.area.top + box.top * frame.down,
        box.width * frame.across,
        box.height * frame.down,
    )
    first, columns = _touched(area.left, area.width, frame.size.width)
    upper, rows = _touched(area.top, area.height, frame.size.height)
    image = frame.image.crop(first, upper, columns, rows)
    area = area._replace(left=area.left - first, top=area.top - upper)
    return attrs.evolve(frame, image=image, size=Size(columns, rows), area=area)


def crop_smartly(frame: ScaledFrame, step: steps.SmartCrop, run: Run) -> ScaledFrame:
    """Keep the most interesting part of the first frame."""

    def region() -> tuple[int, int]:
        found = _interesting(frame, step.size, step.turn)
        run.regions.append(found)
        return found

    return crop(frame, step.at(*run.once(step, region)), run)


def resample(frame: ScaledFrame, step: steps.Resample, run: Run) -> ScaledFrame:
    """Resample all of a frame to a size. Factors and a kernel of libvips are used if they lead to it."""
    size, area, image = step.size, frame.area, None
    if step.pillow and frame.image.format == "uchar":
        return _resampled_by_pillow(frame, size)
    if step.libvips is not None and (area.left, area.top) == (0, 0):
        # libvips leaves out the last pixels of a smaller copy if they cover only parts of pixels.
        whole = max(1, int(area.width + _NEGLIGIBLE)), max(1, int(area.height + _NEGLIGIBLE))
        across = step.libvips[0] * area.width / frame.across / whole[0]
        down = step.libvips[1] * area.height / frame.down / whole[1]
        cut = frame.image.crop(0, 0, *whole)
        image = resampling.resample_by_libvips(cut, across, down, size, step.kernel)
    if image is None and not step.exact and area == (0, 0, *frame.size):
        image = resampling.reduce_in_array(frame.image, frame.size, size)
    if image is None:
        image = resampling.resample(frame.image, frame.size, *size, area, exact=step.exact)
    return ScaledFrame(image, size, Area(0, 0, *size))


def extend(frame: ScaledFrame, step: steps.Extend, run: Run) -> ScaledFrame:
    """Put a frame into a larger one."""
    image = frame.image
    right, bottom = step.size.width - step.left - image.width, step.size.height - step.top - image.height
    sides = step.top, right, bottom, step.left
    return ScaledFrame.whole(shapes.add_padding(image, *sides, step.asked.background))


def to_srgb(frame: ScaledFrame, step: steps.ToSrgb, run: Run) -> ScaledFrame:
    """Convert a frame to sRGB or gray."""
    return attrs.evolve(frame, image=colorspace.to_srgb(frame.image, step.stated, cmyk=step.cmyk))


def recolor(frame: ScaledFrame, step: steps.Recolor, run: Run) -> ScaledFrame:
    """Apply folded color operations, after the corrections that the first frame asks for."""
    from imgsvc_core.pixels.pointwise import apply_blocks  # most requests leave colors as they are
    from imgsvc_core.plan.folding import fold

    image, blocks = frame.image, step.blocks
    if not step.gray:
        image = to_rgb(image)  # the plan expects color from a watermark, but a gray one brings none
    if step.enhance:
        from imgsvc_core.pixels.enhance import measure  # few requests need it

        if corrections := run.once(step, lambda: measure(image)):
            blocks = fold((*corrections, *step.operations), gray=step.gray)
    return attrs.evolve(frame, image=apply_blocks(image, blocks))


def flatten(frame: ScaledFrame, step: steps.Flatten, run: Run) -> ScaledFrame:
    """Lay a frame on a color."""
    return attrs.evolve(frame, image=shapes.flatten(frame.image, step.background))


def _turned(frame: ScaledFrame, orientation: int) -> ScaledFrame:
    image, size = resampling.turn(frame.image, orientation), turns.turned(frame.size, orientation)
    area = turns.turned_area(frame.area, frame.size, orientation)
    across, down = (frame.down, frame.across) if orientation >= 5 else (frame.across, frame.down)
    return ScaledFrame(image, size, area, across, down)


def _interesting(frame: ScaledFrame, size: Size, turn: int = 1) -> tuple[int, int]:
    """Return left and top, in pixels of the plan, of the most interesting part of a size.

    The search uses the picture as it was before a turn.
    """
    if turn != 1:
        back = turns.inverse(turn)
        before, part = _turned(frame, back), turns.turned(size, back)
        whole = Size(round(before.area.width / before.across), round(before.area.height / before.down))
        box = turns.turned_box(Box(*_interesting(before, part), *part), whole, turn)
        return box.left, box.top
    columns, rows = max(1, round(size.width * frame.across)), max(1, round(size.height * frame.down))
    left, top = resampling.smart_box(frame.image, columns, rows)
    return (
        _within((left - frame.area.left) / frame.across, frame.area.width / frame.across - size.width),
        _within((top - frame.area.top) / frame.down, frame.area.height / frame.down - size.height),
    )


def _resampled_by_pillow(frame: ScaledFrame, size: Size) -> ScaledFrame:
    """Resample all of a frame to a size. Decoded pixels that it covers only in part count as whole."""
    area, image = frame.area, frame.image
    if area.left == area.top == 0:
        area = Area(0, 0, math.ceil(area.width), math.ceil(area.height))
        image = resampling.completed(image, int(area.width), int(area.height))
    else:  # an area may end within the last pixels, which a decoder has cut off
        across, down = math.ceil(area.left + area.width), math.ceil(area.top + area.height)
        image = resampling.completed(image, max(image.width, across), max(image.height, down))
    return ScaledFrame.whole(resampling.resample_by_pillow(image, *size, area))


def _within(value: float, largest: float) -> int:
    return max(0, min(round(value), round(largest)))


def _touched(start: float, length: float, have: int) -> tuple[int, int]:
    first = min(max(math.floor(start), 0), have - 1)
    return first, min(max(math.ceil(start + length), first + 1), have) - first
