"""What a URL of thumbor asks of a picture, as a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Spec, Trim
from imgsvc_urls.dialects.building import Smart, built, cut, stretched
from imgsvc_urls.dialects.thumbor.drawing import Drawing
from imgsvc_urls.dialects.thumbor.encoding import Encoding, named_format
from imgsvc_urls.dialects.thumbor.filters import Filter
from imgsvc_urls.dialects.thumbor.geometry import FocalArea, Layout, layout, mirrored
from imgsvc_urls.dialects.thumbor.path import Parts

OF_GIFS = ("cover", "extract_focal", "focal", "max_age", "no_upscale", "stretch")
"""The filters that thumbor applies to GIFs. It leaves out the others."""

_TRIM = re.compile(r"trim(?::(top-left|bottom-right))?(?::([0-9]{1,9}))?")
_FOCAL = re.compile(r"([0-9]{1,9})x([0-9]{1,9}):([0-9]{1,9})x([0-9]{1,9})")


@attrs.frozen
class Drawn:
    """What a URL asks of a picture: how it is encoded, which part of it is scaled, and what is drawn then.

    ``converted`` says that a PNG becomes JPEG without being asked to.
    """

    output: dict[str, Any]
    layout: Layout
    drawing: Drawing
    converted: bool


def drawn(
    parts: Parts,
    filters: tuple[Filter, ...],
    info: ImageInfo,
    *,
    focal: Iterable[FocalArea],
    watermarks: Mapping[str, str],
    encoding: Encoding,
    whole: Size | None = None,
    accepted: Sequence[str] = (),
) -> Drawn:
    """Return what a URL asks of a picture.

    Args:
        parts: the parts of the URL.
        filters: the filters of the URL.
        info: the facts of the picture.
        focal: what should stay visible.
        watermarks: the ids of watermarks by their URLs.
        encoding: what settings say about results.
        whole: the size of the picture before a trim.
        accepted: formats for a URL without one, as the client accepts them, the preferred one first.

    Raises:
        DialectError: a part or a filter asks for something that is not possible; the message names it.
    """
    if info.format == "gif":
        filters = tuple(item for item in filters if item.name in OF_GIFS)
    output = encoding.output(filters, info, accepted, opaque=False)
    size = Size(*info.upright_size)
    called = {item.name for item in filters}
    found = layout(
        parts,
        size,
        stretch=parts.stretch or "stretch" in called,
        largest=(whole or size) if "no_upscale" in called else None,
        focal=list(focal),
    )
    drawing = Drawing(found.size, found.asked, watermarks, info.alpha, FORMATS[output["format"]].alpha)
    drawing.add_all(filters)
    if not drawing.alpha:
        output = encoding.output(filters, info, accepted, opaque=True)
    converted = info.format == "png" and output["format"] == "jpg" and named_format(filters) is None
    return Drawn(output, found, drawing, converted)


def request_of(drawn: Drawn, parts: Parts, info: ImageInfo, *, smart: Smart, upright: bool) -> Spec:
    """Return the request.

    Args:
        drawn: what the URL asks of the picture.
        parts: the parts of the URL.
        info: the facts of the picture.
        smart: the gravity that the part ``smart`` stands for.
        upright: whether the picture is turned by its EXIF orientation.
    """
    return built(
        orient={"stored": not upright, "cmyk": "plain"} if info.colorspace == "cmyk" else None,
        flip={"horizontal": parts.flip[0], "vertical": parts.flip[1]} if any(parts.flip) else None,
        **_reduced(parts, drawn.layout, Size(*info.upright_size), smart),
        filter=drawn.drawing.steps,
        output=drawn.output,
    )


def trim_of(parts: Parts) -> Trim | None:
    """Return what is cut away before all else."""
    if parts.trim is None:
        return None
    corner, threshold = _TRIM.findall(parts.trim)[0]
    return Trim(threshold=min(255, int(threshold or 0)), pillow=True, from_end=corner == "bottom-right")


def focal_areas(filters: tuple[Filter, ...]) -> Iterator[FocalArea]:
    """Yield the rectangles that filters ``focal`` name; empty ones are left out."""
    for item in filters:
        found = _FOCAL.match(item.arguments[0]) if item.name == "focal" else None
        if found:
            left, top, right, bottom = map(int, found.groups())
            area = FocalArea(left, top, right, bottom)
            if area.left < area.right and area.top < area.bottom:
                yield area


def _reduced(parts: Parts, found: Layout, size: Size, smart: Smart) -> dict[str, Any]:
    """Return crop and resize, in the frame of the mirrored picture."""
    cropped, part = (mirrored(box, size, parts.flip) for box in (found.cropped, found.part))
    if parts.smart and smart != "none" and part.size != cropped.size:
        box = {"width": found.size.width, "height": found.size.height}
        return {"crop": cut(cropped, size), "resize": {"mode": "fit", "gravity": smart, **box}}
    resize = stretched(part.size, found.size)
    return {"crop": cut(part, size), "resize": resize and {**resize, "pillow": True}}
