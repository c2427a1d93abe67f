"""The pictures of watermarks, which are read once for all requests and rendered for each result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import attrs
import pyvips

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import LimitExceeded, Problem, SourceError, SpecError, TimeLimitExceeded
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.limits import Limits, check_memory
from imgsvc_core.pixels.render import render
from imgsvc_core.plan import compile_plan
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.placement import watermark_size
from imgsvc_core.plan.seen import Sides
from imgsvc_core.sources.opening import open_source
from imgsvc_core.sources.receiving import Source, received
from imgsvc_core.spec import Resize, Spec, Watermark
from imgsvc_core.spec.thumbor_filters import Mark

Watermarks = Mapping[str, Source] | Callable[[str], Source | None]
"""Watermark images by id, or a function that returns them."""


def receive_watermark(id: str, watermarks: Watermarks | None, limits: Limits, deadline: Deadline) -> Source:
    """Return the picture of a watermark, with the bytes of a file object in its place."""
    source: Source | None
    try:
        source = watermarks(id) if callable(watermarks) else (watermarks or {})[id]
    except KeyError:
        source = None
    if source is None:
        raise SpecError(
            [Problem("watermark.id", "Watermark 'id' parameter must be a known watermark", f"got '{id}'")]
        )
    with _naming_watermark(id):
        return received(source, limits, deadline)


@frozen
class ReceivedWatermarks:
    """The sources of watermarks by id, which are opened and rendered for each result."""

    sources: Mapping[str, Source]
    limits: Limits
    deadline: Deadline

    def picture(self, mark: Mark, size: Size, held: int = 0, *, memory: int = 0) -> pyvips.Image:
        """Return the picture of a watermark for an image of a size.

        Args:
            mark: the watermark.
            size: the size of the image.
            held: the number of bytes that other pictures for the image take.
            memory: the number of bytes that the plan of the image may take.
        """
        watermark, request, limits = mark.watermark, mark.request, self.limits
        with _naming_watermark(watermark.id):
            source = mark.drawing.encode() if mark.drawing else self.sources[watermark.id]
            opened = open_source(source, limits, inlined_pixels=limits.source_pixels)
            if request is None:
                width, height = watermark_size(opened.info.upright_size, size, watermark)
                request = Spec(resize=Resize(width=width, height=height, mode="stretch"))
            of_frame = request.output is not None and request.output.frame
            shown = opened.info if of_frame else attrs.evolve(opened.info, frames=1)
            most = attrs.evolve(Limits.none(), source_pixels=limits.source_pixels)
            plan = compile_plan(request, shown, limits=most, suffix=".png")
            memory += held + plan.memory
            check_memory(memory, limits)
            inner = partial(self.picture, memory=memory)
            # a picture that stayed watched would keep its decoder until the end
            with (
                translate_errors(opened.info.format),
                self.deadline.watching(opened.load_image(plan.load)) as image,
            ):
                return in_memory(render(image, plan, inner).image)

    def sides(self, id: str) -> Sides:
        """Return the room that a nine-patch frame leaves on each side."""
        from imgsvc_core.pixels.nine_patch import padding

        return padding(self.picture(Mark(watermark=Watermark(id=id)), Size(1, 1)))


@contextlib.contextmanager
def _naming_watermark(id: str) -> Iterator[None]:
    """Name the watermark in errors of its image, to tell them from errors of the source."""
    try:
        yield
    except TimeLimitExceeded:
        raise
    except (SourceError, LimitExceeded) as error:
        error.begin_with(f"Watermark '{id}'")
        raise
