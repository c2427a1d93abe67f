"""Sizes of results, as far as a request or the facts of its source tell them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from imgsvc_core.errors import LimitExceeded, SpecError, UnsupportedOperation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan import Plan, compile_plan
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import Resample
from imgsvc_core.spec.density import at_width, with_upscale
from imgsvc_core.spec.request import Spec

_ANY_SOURCES = tuple(
    ImageInfo(format="png", width=width, height=height, colorspace="srgb", bytes=0)
    for width, height in ((9000, 6000), (6000, 9000), (7000, 7000))
)
"""Sources so different that a request which gives all of them one size tells the size by itself."""


def size_of(spec: Spec, source: ImageInfo | None) -> Size | None:
    """Return the size of the result without any enlarging, or None if it is not known.

    Args:
        spec: the request.
        source: the facts of the source, if they are known.
    """
    if source is None or _depends_on_pixels(spec):
        sizes = {_size(_planned(spec, item)) for item in _ANY_SOURCES}
        return sizes.pop() if len(sizes) == 1 else None
    plan = _planned(spec, source)
    if plan is None or not _enlarges(plan):
        return _size(plan)
    (width,) = within(source, [plan.size.width], lambda width: at_width(spec, width))
    return _size(_planned(at_width(spec, width), source))


def within(source: ImageInfo, sizes: Sequence[int], spec_of: Callable[[int], Spec]) -> list[int]:
    """Return the sizes whose results enlarge nothing. The largest such size replaces those beyond it.

    Args:
        source: the facts of the source.
        sizes: widths, or other numbers that make results larger.
        spec_of: returns the request for a size.
    """

    def is_too_large(size: int) -> bool:
        try:
            plan = _planned(with_upscale(spec_of(size), upscale=True), source)
        except SpecError:  # of a width without room for the border
            return False
        return plan is not None and _enlarges(plan)

    too_large = [size for size in sizes if is_too_large(size)]
    if not too_large:
        return list(sizes)
    fitting = [size for size in sizes if size not in too_large]
    largest = bisect_left(range(1, min(too_large)), True, key=is_too_large)
    return [*fitting, largest] if largest and largest not in fitting else fitting or [min(sizes)]


def _enlarges(plan: Plan) -> bool:
    return any(
        item.after.width > item.before.width or item.after.height > item.before.height
        for item in plan.steps
        if isinstance(item.step, Resample)
    )


def _depends_on_pixels(spec: Spec) -> bool:
    return spec.trim is not None or (spec.crop is not None and spec.crop.mode == "face")


def _size(plan: Plan | None) -> Size | None:
    return None if plan is None else plan.size


def _planned(spec: Spec, source: ImageInfo) -> Plan | None:
    try:
        return compile_plan(spec, source)
    except (LimitExceeded, UnsupportedOperation):
        return None
