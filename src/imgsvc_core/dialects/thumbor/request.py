"""What a URL of thumbor asks of a picture, as a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.dialects.building import Side, built, cut, gravity_of, stretched
from imgsvc_core.dialects.thumbor.drawing import Drawing
from imgsvc_core.dialects.thumbor.encoding import Encoding
from imgsvc_core.dialects.thumbor.filters import Filter
from imgsvc_core.dialects.thumbor.geometry import FocalArea, Layout, layout, mirrored
from imgsvc_core.dialects.thumbor.path import BAD_REQUEST, Parts
from imgsvc_core.errors import DialectError
from imgsvc_core.info import ImageInfo
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Spec

Smart = Literal["none", "face", "faces", "smart"]

_AFTER_TRIM = (
    "autojpg", "format", "max_age", "max_bytes", "noise", "quality", "strip_exif", "strip_icc",
)  # fmt: skip
OF_GIFS = ("cover", "extract_focal", "focal", "max_age", "no_upscale", "stretch")
"""The filters that thumbor applies to GIFs. It leaves out the others."""

_TRIM = re.compile(r"trim(?::(top-left|bottom-right))?(?::([0-9]{1,9}))?")
_FOCAL = re.compile(r"([0-9]{1,9})x([0-9]{1,9}):([0-9]{1,9})x([0-9]{1,9})")


def request_of(
    parts: Parts,
    filters: tuple[Filter, ...],
    info: ImageInfo,
    *,
    focal: Iterable[FocalArea],
    smart: Smart,
    watermarks: Mapping[str, str],
    encoding: Encoding,
    accepted: Sequence[str] = (),
) -> Spec:
    """Return the request.

    Args:
        parts: the parts of the URL.
        filters: the filters of the URL.
        info: the facts of the picture.
        focal: what should stay visible.
        smart: the gravity that the part ``smart`` stands for.
        watermarks: the ids of watermarks by their URLs.
        encoding: what settings say about results.
        accepted: formats for a URL without one, as the client accepts them, the preferred one first.

    Raises:
        DialectError: a part or a filter asks for something that is not possible; the message names it.
    """
    if info.format == "gif":
        filters = tuple(item for item in filters if item.name in OF_GIFS)
    output = encoding.output(filters, info, accepted)
    if parts.trim is not None:
        return built(**_trimmed(parts, filters), output=output)
    size = Size(*info.upright_size)
    called = {item.name for item in filters}
    found = layout(
        parts,
        size,
        stretch=parts.stretch or "stretch" in called,
        no_upscale="no_upscale" in called,
        focal=list(focal),
    )
    drawing = Drawing(found.size, found.asked, watermarks, info.alpha, FORMATS[output["format"]].alpha)
    drawing.add_all(filters)
    return built(
        flip={"horizontal": parts.flip[0], "vertical": parts.flip[1]} if any(parts.flip) else None,
        **_reduced(parts, found, size, smart),
        filter=drawing.steps,
        output=output,
    )


def check_possible(parts: Parts) -> None:
    """Raise `DialectError` if parts are not possible with any picture."""
    for name in ("debug", "meta"):
        if getattr(parts, name):
            raise DialectError(f"'{name}' is not supported in URLs of thumbor.", status=BAD_REQUEST)


def _trimmed(parts: Parts, filters: tuple[Filter, ...]) -> dict[str, Any]:
    """Return the operations after a trim, which must not depend on the size that it leaves."""
    corner, threshold = _TRIM.findall(parts.trim or "")[0]
    if corner == "bottom-right":
        raise _impossible_trim("the color is that of the top left corner")
    for item in filters:
        if item.name not in _AFTER_TRIM:
            raise _impossible_trim(f"with filter '{item.name}' the result depends on what is cut away")
    width, height = parts.width, parts.height
    if parts.crop or parts.full or parts.adaptive or parts.smart or None in (width, height):
        raise _impossible_trim("it is supported together with a size, fit-in and alignment only")
    resize: dict[str, Any] = {"width": width or None, "height": height or None}
    if parts.fit_in:
        resize |= {"upscale": False}
    elif width and height:
        resize |= {"mode": "stretch"} if parts.stretch else {"mode": "fit", "gravity": _alignment(parts)}
    flip = {"horizontal": parts.flip[0], "vertical": parts.flip[1]} if any(parts.flip) else None
    if flip and resize.get("gravity", "center") != "center":
        raise _impossible_trim("it is not supported together with mirroring and alignment")
    return {
        "trim": {"threshold": min(255, int(threshold or 0))},
        "flip": flip,
        "resize": resize if width or height else None,
    }


def _alignment(parts: Parts) -> str:
    sides: dict[str, Side] = {"left": "near", "top": "near", "right": "far", "bottom": "far"}
    return gravity_of(sides.get(parts.halign, "center"), sides.get(parts.valign, "center"))


def _impossible_trim(why: str) -> DialectError:
    return DialectError(f"'trim' of thumbor cannot be applied: {why}.", status=BAD_REQUEST)


def focal_areas(filters: tuple[Filter, ...]) -> Iterator[FocalArea]:
    """Yield the rectangles that filters ``focal`` name; empty ones are left out."""
    for item in filters:
        found = _FOCAL.match(item.arguments[0]) if item.name == "focal" else None
        if found:
            area = FocalArea(*map(int, found.groups()))
            if area.left < area.right and area.top < area.bottom:
                yield area


def _reduced(parts: Parts, found: Layout, size: Size, smart: Smart) -> dict[str, Any]:
    """Return crop and resize, in the frame of the mirrored picture."""
    cropped, part = (mirrored(box, size, parts.flip) for box in (found.cropped, found.part))
    if parts.smart and smart != "none" and part.size != cropped.size:
        box = {"width": found.size.width, "height": found.size.height}
        return {"crop": cut(cropped, size), "resize": {"mode": "fit", "gravity": smart, **box}}
    return {"crop": cut(part, size), "resize": stretched(part.size, found.size)}
