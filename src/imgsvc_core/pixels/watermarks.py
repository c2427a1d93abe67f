"""The pictures of watermarks and layers, read once for all requests and rendered for each result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import attrs
import pyvips

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import LimitExceeded, SourceError, TimeLimitExceeded, invalid_id
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.limits import Limits, check_memory
from imgsvc_core.pixels.render import render
from imgsvc_core.plan import compile_plan
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.layers import Laid
from imgsvc_core.plan.placement import watermark_size
from imgsvc_core.sources.opening import open_source
from imgsvc_core.sources.receiving import Source, received
from imgsvc_core.sources.url_messages import shown_url
from imgsvc_core.spec import Resize, Spec
from imgsvc_core.spec.thumbor_filters import Mark

Watermarks = Mapping[str, Source] | Callable[[str], Source | None]
"""Watermark images by id, or a function that returns them."""


def receive_pictures(
    received_ones: dict[str, Source],
    spec: Spec,
    watermarks: Watermarks | None,
    limits: Limits,
    deadline: Deadline,
) -> None:
    """Add the pictures of the watermark and the layers of a request by id, with the bytes of file objects in
    their place.

    ``watermarks`` may also have the pictures that layers name by path or URL.

    Raises:
        SpecError: an id is not known.
    """
    for id in spec.pictures:
        if id not in received_ones:
            path = spec.path_of_picture(id)
            received_ones[id] = receive_watermark(id, watermarks, limits, deadline, path=path)
    if isinstance(watermarks, Mapping):
        for place in (picture.source for picture in spec.layer_pictures.values()):
            if place is not None and place in watermarks and place not in received_ones:
                with _naming(f"Layer picture '{shown_url(place)}'"):
                    received_ones[place] = received(watermarks[place], limits, deadline)


def receive_watermark(
    id: str, watermarks: Watermarks | None, limits: Limits, deadline: Deadline, *, path: str = "watermark.id"
) -> Source:
    """Return the picture of a watermark, with the bytes of a file object in its place.

    ``path`` is where the request names it.
    """
    source: Source | None
    try:
        source = watermarks(id) if callable(watermarks) else (watermarks or {})[id]
    except KeyError:
        source = None
    if source is None:
        raise invalid_id(path, "must be a known watermark", f"got '{shown_url(id)}'")
    with _naming(f"Watermark '{shown_url(id)}'"):
        return received(source, limits, deadline)


@frozen
class ReceivedWatermarks:
    """The sources of watermarks by id, which are opened and rendered for each result."""

    sources: Mapping[str, Source]
    limits: Limits
    deadline: Deadline

    def picture(self, mark: Mark | Laid, size: Size, held: int = 0, *, memory: int = 0) -> pyvips.Image:
        """Return the picture of a watermark or a layer for an image of a size.

        Args:
            mark: the watermark or the layer.
            size: the size of the image.
            held: the number of bytes that other pictures for the image take.
            memory: the number of bytes that the plan of the image may take.
        """
        limits, request = self.limits, mark.request if isinstance(mark, Mark) else None
        with _naming(_shown(mark), mark.picture_path if isinstance(mark, Laid) else ""):
            source = self._source(mark)
            opened = open_source(source, limits, inlined_pixels=limits.source_pixels)
            if request is None:
                own = opened.info.upright_size
                if isinstance(mark, Laid):
                    width, height = mark.picture_size(Size(*own))
                else:
                    width, height = watermark_size(own, size, mark.watermark)
                request = Spec(resize=Resize(width=width, height=height, mode="stretch"))
            of_frame = request.output is not None and request.output.frame
            shown = opened.info if of_frame else attrs.evolve(opened.info, frames=1)
            most = attrs.evolve(Limits.none(), source_pixels=limits.source_pixels)
            plan = compile_plan(request, shown, limits=most, suffix=".png")
            memory += held + plan.memory
            if isinstance(mark, Laid):
                memory += mark.below(Size(width, height))
            check_memory(memory, limits)
            inner = partial(self.picture, memory=memory)
            # a picture that stayed watched would keep its decoder until the end
            with (
                translate_errors(opened.info.format),
                self.deadline.watching(opened.load_image(plan.load)) as image,
            ):
                return in_memory(render(image, plan, inner).image)

    def _source(self, mark: Mark | Laid) -> Source:
        if isinstance(mark, Mark):
            return mark.drawing.encode() if mark.drawing else self.sources[mark.watermark.id]
        picture = mark.layer.picture
        assert picture is not None
        if picture.id is not None:
            return self.sources[picture.id]
        assert picture.source is not None
        return self.sources.get(picture.source, picture.source)


def _shown(mark: Mark | Laid) -> str:
    if isinstance(mark, Mark):
        return f"Watermark '{shown_url(mark.watermark.id)}'"  # a command names it by its URL
    assert mark.layer.picture is not None
    return mark.layer.picture.shown


@contextlib.contextmanager
def _naming(subject: str, path: str = "") -> Iterator[None]:
    """Name the watermark or layer in errors of its image, to tell them from errors of the source.

    ``path`` is where the request names the picture of a layer.
    """
    try:
        yield
    except TimeLimitExceeded:
        raise
    except (SourceError, LimitExceeded) as error:
        error.begin_with(subject)
        error.path = path
        raise
