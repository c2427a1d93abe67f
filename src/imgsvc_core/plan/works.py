"""The work on a picture that has no class of steps: its text, its size, its function of pixels.

Most requests ask for none of it, so this is loaded when the first one does. The work of redaction, filters
and watermarks is in `imgsvc_core.plan.filter_works`, which layers do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from imgsvc_core._runtime.records import frozen
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.plan.steps import PLAIN, Traits
from imgsvc_core.spec import Border, Mask, Padding

if TYPE_CHECKING:
    from imgsvc_core.spec.thumbor_filters import Mark

A = TypeVar("A")


@frozen(kw_only=True)
class Work(Generic[A]):
    """The work that a request asks for, and its function.

    Args:
        pixels: the function that does it, as ``module:function`` of `imgsvc_core.pixels`. It takes a frame,
            the part of the request, and the picture of a watermark if the work needs one.
        text: returns what the work does, for `explain`.
        why: the reason, if the request does not tell it.
        size: returns the new frame of one of a size, in its pixels; without it, the frame stays.
        traits: the facts for the compiler.
        mark: returns the mark or the layer whose picture the work needs, or None if it needs no picture.
        draws: the function that makes what the work lays over each frame, of the part of the request and the
            picture. ``pixels`` then takes what it makes in place of the picture.
        joined: returns the part that asks for the same as two in a row.
    """

    pixels: str
    text: Callable[[A], str]
    why: str = ""
    size: Callable[[A, Size], Box] | None = None
    traits: Traits | Callable[[A], Traits] = PLAIN
    mark: Callable[[A], Mark | Laid | None] | None = None
    draws: str = ""
    joined: Callable[[A, A], A] | None = None


def _room_around(size: Size, top: int, right: int, bottom: int, left: int) -> Box:
    """Return a frame with room around one of a size."""
    return Box(-left, -top, size.width + left + right, size.height + top + bottom)


NEIGHBORS = Traits(rereads=True, copies=1.5)

_MASK = Work[Mask](
    pixels="shapes:cut_to_mask",
    text=lambda mask: f"{mask.shape} mask" + ("" if mask.radius is None else f" of radius {mask.radius}"),
    traits=lambda mask: PLAIN.on([mask.background]),
)
_PADDING = Work[Padding](
    pixels="shapes:pad",
    text=lambda padding: "add {} at the top, {} right, {} bottom, {} left".format(*padding.sides),
    size=lambda padding, before: _room_around(before, *padding.sides),
    traits=lambda padding: PLAIN.on([padding.background]),
)
_BORDER = Work[Border](
    pixels="shapes:draw_border",
    text=lambda border: f"border of {border.size} in {border.color}, radius {border.radius}",
    size=lambda border, before: _room_around(before, *(border.size,) * 4),
    traits=lambda border: PLAIN.on([border.color, *([border.background] if border.radius else [])]),
)
_LAYER = Work[Laid](
    pixels="layers.laying:lay_layer",
    draws="layers.laying:draw_layer",
    text=lambda laid: laid.text,
    traits=lambda laid: Traits(
        rereads=True,
        settles=True,
        in_array=True,
        brings_color=not laid.layer.gray,
        drawn=laid.memory,
        buffers=laid.buffers,
    ),
    mark=lambda laid: None if laid.layer.picture is None else laid,
)

WORKS: Mapping[type, Work[Any]] = {Mask: _MASK, Padding: _PADDING, Border: _BORDER, Laid: _LAYER}
"""The work on the frame and of layers, by the class of what is asked."""


def work_of(asked: object) -> Work[Any]:
    """Return the work that a part of a request asks for."""
    if (work := WORKS.get(type(asked))) is None:
        from imgsvc_core.plan.filter_works import FILTER_WORKS

        work = FILTER_WORKS[type(asked)]
    return work
