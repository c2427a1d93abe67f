"""URLs of other services and their pictures, turned into requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from imgsvc_core._runtime.deadline import Deadline
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.inspection import inspect
from imgsvc_core.limits import Limits, limits_or
from imgsvc_core.plan.geometry import Box, Size, symmetric
from imgsvc_core.sources.opening import open_source
from imgsvc_core.sources.receiving import Source, received
from imgsvc_core.spec import Orient, Output, Spec, Trim
from imgsvc_urls.dialects import Document, ForeignUrl

if TYPE_CHECKING:
    from imgsvc_core.pixels.watermarks import Watermarks


def translate(
    url: ForeignUrl,
    source: Source,
    *,
    limits: Limits | None = None,
    name: str | None = None,
    watermarks: Watermarks | None = None,
) -> Spec | Document | None:
    """Return the request of a URL for its picture, `None` to deliver its file unchanged, or a document.

    If the URL trims the picture, its border is searched first, and the request is for what the trim leaves.

    Args:
        url: the URL.
        source: the picture, as `imgsvc_core.process` takes it.
        limits: what the picture may have at most, and how long all may take.
        name: the file name of the picture.
        watermarks: the pictures that the URL names in `ForeignUrl.pictures`, by id.

    Raises:
        DialectError: the URL asks for something that is not possible; the message names the option.
        SourceError, LimitExceeded: the picture cannot be read, or exceeds the limits.
    """
    limits = limits_or(limits, Limits())
    deadline = Deadline(limits.seconds)
    source = received(source, limits, deadline, name=name)
    info = inspect(source, name=name, limits=limits)
    if url.pictures:
        url = attrs.evolve(url, facts=_facts(url.pictures, watermarks, limits, deadline))
    turned = url.upright or info.orientation == 1
    info = info if turned else attrs.evolve(info, orientation=1)
    whole = info
    before: dict[str, Any] = {}
    if (trim := url.trim(info)) is not None:
        box = deadline.run(_enclosed, source, info, trim, limits, deadline)
        before["trim"] = Trim(threshold=trim.threshold, box=box)
        info, url = _cut(info, box), url.of_part(box, Size(*info.upright_size))
    if info.alpha and (judged := url.judged(info)) is not None:
        parts = {**dict(judged.operations()), **before, "output": Output(format="png")}
        judged = Spec(**parts, filter=[item for item in judged.filter if not item.pictures])
        alpha = deadline.run(_is_transparent, source, whole, judged, limits, deadline)
        info = attrs.evolve(info, alpha=alpha)
    spec = url.spec(info)
    if not isinstance(spec, Spec):
        return spec
    if not turned:
        before["orient"] = Orient(stored=True, cmyk=None if spec.orient is None else spec.orient.cmyk)
    parts = {**dict(spec.operations()), **before, "filter": spec.filter}
    return Spec(**parts)


def _facts(
    ids: Iterable[str], watermarks: Watermarks | None, limits: Limits, deadline: Deadline
) -> dict[str, ImageInfo]:
    """Return the facts of watermark pictures."""
    from imgsvc_core.pixels.watermarks import receive_watermark

    received = {id: receive_watermark(id, watermarks, limits, deadline) for id in ids}
    return {id: inspect(source, limits=limits) for id, source in received.items()}


def _enclosed(source: Source, info: ImageInfo, trim: Trim, limits: Limits, deadline: Deadline) -> Box:
    """Return what a trim leaves of the upright picture."""
    from imgsvc_core.pixels.border_search import (
        find_border,  # with libvips, which other URLs should not wait for
    )

    opened = attrs.evolve(open_source(source, limits), info=info)
    return symmetric(find_border(opened, trim, limits, deadline), Size(*info.upright_size), trim)


def _is_transparent(
    source: Source, info: ImageInfo, request: Spec, limits: Limits, deadline: Deadline
) -> bool:
    """Return True if any pixel of what a request makes of a picture is transparent."""
    from imgsvc_core.pixels.transparency import is_transparent

    return is_transparent(attrs.evolve(open_source(source, limits), info=info), request, limits, deadline)


def _cut(info: ImageInfo, box: Box) -> ImageInfo:
    """Return the facts of a part of the upright picture."""
    width, height = (box.height, box.width) if info.orientation >= 5 else box.size
    return attrs.evolve(info, width=width, height=height)
