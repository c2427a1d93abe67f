"""The size and the place of layers on a picture: pure functions on numbers of pixels."""

from __future__ import annotations

import math
from math import prod

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import invalid
from imgsvc_core.plan.geometry import Size, rotated
from imgsvc_core.plan.placement import gravity_offset, margins
from imgsvc_core.plan.texts import TextPlan, planned_text
from imgsvc_core.spec.layers import Layer, Length
from imgsvc_core.spec.layers.layer import NON_SEPARABLE

_LONGEST = 65_535
_LINE = 2  # pixels
_EM = 1.2  # sizes: the width of a wide letter
_TEXT_COPIES = 3  # with an outline and what is turned
_SHADOW = 16  # bytes for a pixel, measured with four threads
_PIXEL = 4  # bytes, with alpha
# Bytes of buffers of four threads: of modes that libvips has, and of the many steps of the others.
_MIXED, _MIXED_IN_STEPS = 90_000_000, 170_000_000


@frozen
class Laid:
    """A layer on a picture of a size.

    Args:
        layer: the layer.
        path: where the request has it.
        frame: the size of the picture.
        visible: whether the box of a text is what is visible of its letters.
        tall: the height of that box, up to which letters become smaller.
        shrink: the factor by which they are smaller.
    """

    layer: Layer
    path: str
    frame: Size
    visible: bool = False
    tall: int | None = None
    shrink: float = 1.0

    @property
    def picture_path(self) -> str:
        """Where the request names the picture of the layer."""
        picture = self.layer.picture
        return f"{self.path}.picture.{'source' if picture and picture.source else 'id'}"

    @property
    def size_path(self) -> str:
        """Where the request tells how large the layer is."""
        return f"{self.path}.text.size" if self.layer.text else self.path

    @property
    def sides(self) -> tuple[int | None, int | None]:
        """The width and the height that the request gives.

        Raises:
            SpecError: one of them comes out as less than a pixel, or as too many.
        """
        return self._side("width", self.frame.width), self._side("height", self.frame.height)

    def _side(self, name: str, whole: int) -> int | None:
        length: Length | None = getattr(self.layer.text, name, None)
        path = f"{self.path}.text.{name}"
        if length is None:
            length, path = getattr(self.layer, name), f"{self.path}.{name}"
        if length is None:
            return None
        pixels = length.pixels(whole)
        if not 1 <= pixels <= _LONGEST:
            expected = f"Layer '{name}' parameter must come out as 1 to {_LONGEST} pixels"
            raise invalid(path, expected, f"got {pixels:,} pixels, {length} of {whole:,}")
        return pixels

    @property
    def thickness(self) -> float:
        """The thickness of a line."""
        given = self.layer.shape and self.layer.shape.thickness
        return max(1.0, given.of(min(self.frame))) if given else _LINE

    @property
    def is_straight(self) -> bool:
        """True for a line along the only side that is given."""
        shape, sides = self.layer.shape, (self.layer.width, self.layer.height)
        return shape is not None and shape.kind == "line" and sides.count(None) == 1

    @property
    def drawn_size(self) -> Size:
        """The size of a shape or a gradient, before it is turned.

        Raises:
            SpecError: a side comes out as less than a pixel, or as too many.
        """
        width, height = self.sides
        if self.is_straight:
            thickness = round(self.thickness)
            width, height = width or thickness, height or thickness
        return self._scaled(width or self.frame.width, height or self.frame.height, self.layer.scale)

    def picture_size(self, own: Size) -> Size:
        """Return the size of a picture, before it is turned.

        Its own size is multiplied by the factor, and then fitted into the width and the height. It is
        enlarged only if the layer says so.

        Raises:
            SpecError: a side comes out as too many pixels.
        """
        width, height = self.sides
        bounds = [(own.width, width), (own.height, height)]
        factors = [bound / (side * self.layer.scale) for side, bound in bounds if bound is not None]
        if self.layer.upscale:
            factor = self.layer.scale * min(factors, default=1.0)
        else:
            factor = min(1.0, self.layer.scale * min([1.0, *factors]))
        return self._scaled(*own, factor)

    def _scaled(self, width: float, height: float, factor: float) -> Size:
        size = Size(max(1, round(width * factor)), max(1, round(height * factor)))
        if max(size) > _LONGEST:
            expected = f"Layer 'scale' parameter must lead to at most {_LONGEST} pixels on each side"
            raise invalid(f"{self.path}.scale", expected, f"got {size.width:,} x {size.height:,}")
        return size

    def place(self, size: Size) -> tuple[int, int]:
        """Return left and top of the layer, which has this size after it is turned."""
        layer, frame = self.layer, self.frame
        x, y = (
            0 if length is None else length.pixels(whole)
            for length, whole in zip((layer.x, layer.y), frame, strict=True)
        )
        gravity = layer.gravity
        if gravity is None and (layer.x is not None or layer.y is not None):
            gravity = "top-left"
        padding = 0 if layer.padding is None else layer.padding.pixels(min(frame))
        across, down = margins(gravity, padding)
        return gravity_offset(gravity or "center", size, frame, x + across, y + down)

    @property
    def text_plan(self) -> TextPlan:
        """The text with its fonts and its lengths in pixels.

        Raises:
            MissingDependency: there are no fonts.
            SpecError: the size comes out wrong, a family is not known, or no font has a letter.
        """
        assert self.layer.text is not None
        return planned_text(self.layer.text, f"{self.path}.text", self.frame, self.layer.scale * self.shrink)

    @property
    def memory(self) -> int:
        """The most bytes of what is drawn. A picture that is loaded tells its own."""
        if self.layer.picture is not None:
            return 0
        if self.layer.text is None:
            size = self.drawn_size
            return int(_PIXEL * (prod(size) + prod(rotated(size, self.layer.rotation)))) + self.below(size)
        plan = self.text_plan
        letters = len(plan.letters) * _EM * plan.size
        width = self.sides[0] or letters
        lines = letters / width + plan.letters.count("\n") + 2
        size = Size(math.ceil(width), math.ceil(lines * plan.size * plan.asked.line_height))
        return int(_TEXT_COPIES * _PIXEL * plan.zoom**2 * prod(size)) + self.below(size)

    @property
    def buffers(self) -> int:
        """The most bytes of buffers in which its colors are mixed with those below."""
        mixing = self.layer.blend
        if mixing == "normal":
            return 0
        return _MIXED_IN_STEPS if mixing in NON_SEPARABLE else _MIXED

    def below(self, size: Size) -> int:
        """Return the most bytes that shadows of a layer of a size take."""
        shadows = [self.layer.shadow, self.layer.text and self.layer.text.shadow]
        side = min(self.frame)
        reaches = [3 * math.ceil(shadow.blur.of(side)) for shadow in shadows if shadow]
        return sum(_SHADOW * (size.width + reach) * (size.height + reach) for reach in reaches)

    @property
    def text(self) -> str:
        """What is drawn, in a few words."""
        layer = self.layer
        if layer.picture is not None:
            return f"lay {layer.picture.shown[0].lower()}{layer.picture.shown[1:]} over the picture"
        if layer.text is not None:
            plan = self.text_plan
            return f"write {len(plan.letters)} letters in {plan.runs[0].font}, {plan.size:g} pixels high"
        width, height = self.drawn_size
        if layer.shape is not None:
            return f"draw {layer.shape.kind} of {width} x {height} in {layer.shape.color}"
        assert layer.gradient is not None
        return f"draw gradient of {width} x {height} from {layer.gradient.start} to {layer.gradient.end}"
