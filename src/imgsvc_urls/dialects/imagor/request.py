"""What a URL of imagor asks of a picture, as a request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from imgsvc_core.errors import SpecError
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan.geometry import Size
from imgsvc_core.spec import Spec, Trim
from imgsvc_core.spec.color import BLACK
from imgsvc_urls.dialects import Document
from imgsvc_urls.dialects.building import Smart, animates, built, lower_qualities, window_of
from imgsvc_urls.dialects.imagor.arguments import impossible
from imgsvc_urls.dialects.imagor.drawing import GRAYSCALE, Drawing, plane
from imgsvc_urls.dialects.imagor.geometry import Focal, How, layout
from imgsvc_urls.dialects.imagor.path import NOT_ACCEPTABLE, Filter, Parts, split_overlay
from imgsvc_urls.dialects.thumbor.geometry import mirrored
from imgsvc_urls.errors import DialectError

_FORMATS = {
    "gif": "gif", "jpeg": "jpg", "jpg": "jpg", "pdf": "jpg", "png": "png", "svg": "jpg", "tiff": "tiff",
    "webp": "webp", "heif": "heic", "bmp": "jpg", "avif": "avif", "jp2": "jp2", "jxl": "jxl",
}  # fmt: skip
_QUALITIES = {"avif": 50, "heic": 50, "jp2": 48}
_QUALITY = 75
_LIMITED_QUALITY = 80  # where max_bytes starts unless told
_NAMES = {"jpg": "jpeg", "heic": "heif", "jp2": "jp2k"}
_ANIMATED = ("gif", "webp")
_IN_FULL = ("draw_detections", "focal", "max_bytes", "rotate", "trim")
_MOST_LEVELS = 8  # of pictures that are laid over each other
_ANGLES = {90: 270, 180: 180, 270: 90}
_OF_DELIVERY = ("attachment", "expire", "max_age", "preview")


@attrs.frozen(kw_only=True)
class Allowed:
    """Which filters settings allow, of a picture and of every picture that is laid over it.

    Args:
        most: how many filters of a picture are read for changes of pixels; 0 or less for all.
        disabled: names of filters that are left out.
    """

    most: int = 0
    disabled: tuple[str, ...] = ()

    def of(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Yield the allowed filters that say something about the picture."""
        for place, item in enumerate(filters):
            too_many = 0 < self.most <= place and Drawing.draws(item)
            if not too_many and item.name not in (*_OF_DELIVERY, *self.disabled):
                yield item


@attrs.frozen(kw_only=True)
class Known:
    """The settings and the facts of watermarks that a request depends on, too.

    Args:
        smart: the gravity that the part ``smart`` stands for.
        allowed: the filters that settings allow.
        watermarks: the ids of watermarks by their URLs.
        facts: those of watermarks, by id.
    """

    smart: Smart
    allowed: Allowed
    watermarks: Mapping[str, str]
    facts: Mapping[str, ImageInfo]


def request_of(
    parts: Parts, info: ImageInfo, known: Known, *, metadata: str, accepted: Sequence[str]
) -> Spec | Document | None:
    """Return the request, facts of its result for ``meta``, or `None` to deliver the file unchanged.

    Args:
        parts: the parts of the URL.
        info: the facts of the picture.
        known: what is known beside them.
        metadata: what results keep of it, unless the URL says otherwise.
        accepted: formats for a URL without one, as the client accepts them, the preferred one first.

    Raises:
        DialectError: a part or a filter asks for something that is not possible; the message names it.
    """
    called = {item.name: item for item in parts.filters}
    if "raw" in called and info.format != "svg":
        return None
    output = _output(parts.filters, info, metadata, accepted)
    kept = 1 if "frame" in output else output.get("frames", info.frames)
    animated = kept > 1 and animates(output["format"])
    made, drawing = _made(parts, info, known, animated=animated)
    if parts.meta:
        drawn = info.format == "svg" and named_format(parts.filters) is None
        return _facts(drawing, info, "svg" if drawn else output["format"], frames=kept)
    return _built(parts, **made, output=output)


def _built(parts: Parts, **made: Any) -> Spec:
    """Return the spec of some operations. A message about their numbers names the size in the URL."""
    try:
        return built(**made)
    except SpecError as error:
        size = f"{parts.width or ''}x{parts.height or ''}"
        message = f"The size '{size}' of imagor cannot be applied: {error.message}."
        raise DialectError(message, status=NOT_ACCEPTABLE) from error


def _made(parts: Parts, info: ImageInfo, known: Known, *, animated: bool) -> tuple[dict[str, Any], Drawing]:
    """Return the operations on a picture, without how it is encoded, and what filters draw."""
    called = {item.name: item for item in parts.filters}
    orient = _ANGLES.get(called["orient"].whole(), 0) if "orient" in called else 0
    size = Size(*info.upright_size)
    size = Size(size.height, size.width) if orient % 180 else size
    found = layout(parts, size, _how(parts, called, info, size))
    flip = parts.flip[::-1] if orient % 180 else parts.flip
    drawing = Drawing(
        found.window.size,
        found.asked,
        parts.padding,
        known.watermarks,
        info.alpha,
        animated,
        partial(_overlay, known),
    )
    drawing.add_all(parts.filters)
    gravity = known.smart if found.smart and known.smart != "none" else None
    part = mirrored(found.part, size, parts.flip)
    window = mirrored(found.window, found.scaled, parts.flip)
    down = found.scaled.height / part.height if animated else found.factor  # frames end at whole pixels
    factors = (found.factor, down) if found.factor and down else None
    reduced = window_of(size, part, found.scaled, window, gravity, factors=factors)
    if reduced["resize"] is not None:
        reduced["resize"]["least_scale"] = found.least_scale
    made = {
        "flip": {"horizontal": flip[0], "vertical": flip[1]} if any(flip) else None,
        "rotate": {"angle": orient} if orient else None,
        **reduced,
        "filter": tuple(drawing.steps),
    }
    return made, drawing


def _overlay(known: Known, parts: Parts) -> tuple[str, dict[str, Any]]:
    """Return the id of a picture that is laid over another one, and what is done to it before."""
    parts = attrs.evolve(parts, filters=tuple(known.allowed.of(parts.filters)))
    drawn, id = plane(parts), parts.image
    if drawn is None:
        id = overlay_id(parts, known.watermarks)
    svg, info = drawn or (None, known.facts[id])
    made, _ = _made(parts, info, known, animated=False)
    frame = _frame({item.name: item for item in parts.filters}, info)
    output = {"format": "png", "frame": frame} if frame else None
    return id, {"request": _built(parts, **made, output=output), "drawing": svg}


def overlay_ids(
    filters: Iterable[Filter], watermarks: Mapping[str, str], allowed: Allowed, level: int = 0
) -> Iterator[str]:
    """Yield the ids of the pictures that filters lay over the picture, and over these.

    Args:
        filters: the filters of the picture.
        watermarks: the ids of watermarks by their URLs.
        allowed: the filters that settings allow.
        level: how many pictures are below it.

    Raises:
        DialectError: there is no such picture, or they are laid over each other in too many levels.
    """
    for item in allowed.of(filters):
        if item.name == "image" and item.arguments:
            if level == _MOST_LEVELS:
                raise impossible("image", f"there are more than {_MOST_LEVELS} levels of pictures")
            parts = split_overlay(item.text(0), Size(1, 1))
            if parts.trim is not None:
                raise impossible("image", "the border of what is laid over cannot be trimmed")
            if not parts.image:
                raise impossible("image", "its first argument must end with a picture, got none")
            if plane(parts) is None:
                yield overlay_id(parts, watermarks)
            yield from overlay_ids(parts.filters, watermarks, allowed, level + 1)


def overlay_id(parts: Parts, watermarks: Mapping[str, str]) -> str:
    """Return the id of a picture that is laid over another one."""
    if parts.image not in watermarks:
        raise impossible("image", f"'{parts.image[:60]}' is not in the table of watermarks")
    return watermarks[parts.image]


def _facts(drawing: Drawing, info: ImageInfo, format_: str, *, frames: int) -> Document:
    """Return the facts of a result, without those of EXIF."""
    row = FORMATS[format_]
    colors = 1 if info.colorspace == "gray" or any(step == GRAYSCALE for step in drawing.steps) else 3
    found = {
        "format": _NAMES.get(format_, format_),
        "content_type": "image/heif" if row.name == "heic" else row.media_type,
        "width": drawing.size.width,
        "height": drawing.size.height,
        "orientation": 1 if info.format in ("jpg", "tiff") else 0,
        "pages": frames if animates(format_) else 1,
        "bands": colors + drawing.alpha,
        "exif": {},
    }
    return Document(json.dumps(found).encode())


def trim_of(parts: Parts, info: ImageInfo) -> Trim | None:
    """Return what is cut away before all else. Animations keep their border."""
    if parts.trim is None or (info.animated and named_format(parts.filters) in (None, *_ANIMATED)):
        return None
    _, *words = parts.trim.split(":")
    if parts.crop is not None and max(parts.crop) <= 1:
        why = "a crop by shares of the sides depends on what is cut away"
        raise DialectError(f"'trim' of imagor cannot be applied: {why}.")
    tolerance = next((int(word[:9]) for word in words if word.isdigit()), 0)
    return Trim(threshold=min(255, tolerance or 1), libvips=True, from_end="bottom-right" in words)


def _how(parts: Parts, called: Mapping[str, Filter], info: ImageInfo, size: Size) -> How:
    upscale = not (parts.fit_in and not parts.full)
    for item in parts.filters:
        upscale = {"upscale": True, "no_upscale": False}.get(item.name, upscale)
    grounds = (called[name].text(0) for name in ("fill", "background_color") if name in called)
    in_full = parts.trim is not None or parts.flip[1] or parts.full or parts.adaptive or "auto" in grounds
    oriented = "orient" in called and called["orient"].whole() > 0
    return How(
        stretch=parts.stretch or "stretch" in called,
        upscale=upscale,
        in_full=in_full or oriented or not called.keys().isdisjoint(_IN_FULL),
        focal=tuple(_focal(parts.filters, size)),
        jpeg=info.format == "jpg",
    )


def _focal(filters: Iterable[Filter], size: Size) -> Iterable[Focal]:
    """Yield the rectangles that filters ``focal`` name; empty ones are left out."""
    for item in filters:
        if item.name != "focal":
            continue
        texts = ",".join(item.arguments).replace("x", ",").replace(":", ",").split(",")
        values = Filter("", tuple(texts))
        numbers = [values.number(place) for place in range(len(texts))]
        shares = max(numbers[:2], default=1) < 1 and max(numbers[2:], default=0) <= 1
        sides = (*size, *size)
        if shares:
            numbers = [number * side for number, side in zip(numbers, sides, strict=False)]
        if len(numbers) == 2:
            yield numbers[0], numbers[1], numbers[0] + 1, numbers[1] + 1
        elif len(numbers) == 4 and numbers[2] > numbers[0] and numbers[3] > numbers[1]:
            yield numbers[0], numbers[1], numbers[2], numbers[3]


def named_format(filters: Iterable[Filter]) -> str | None:
    """Return the format that filters name, if it is known."""
    found = None
    for item in filters:
        if item.name == "format":
            found = _FORMATS.get(item.text(0), found)
        elif item.name == "autojpg":
            found = "jpg"
    return found


def _output(
    filters: Sequence[Filter], info: ImageInfo, metadata: str, accepted: Sequence[str]
) -> dict[str, Any]:
    called = {item.name: item for item in filters}
    name = named_format(filters) or _unnamed_format(called, info, accepted)
    if name not in FORMATS or not FORMATS[name].writable:
        raise impossible("format", f"pictures cannot be written as {name}", status=NOT_ACCEPTABLE)
    row = FORMATS[name]
    output: dict[str, Any] = {
        "format": name,
        "background": BLACK,
        "metadata": "strip" if "strip_metadata" in called else metadata,
    }
    quality = called["quality"].whole() if "quality" in called else 0
    if row.quality is not None:
        output["quality"] = min(100, max(1, quality or _QUALITIES.get(name, _QUALITY)))
    if frame := _frame(called, info):
        output["frame"] = frame
    limits = [limit for item in filters if item.name == "max_frames" and (limit := item.whole()) > 0]
    if info.animated and row.animation and not animates(name):
        output["frames"] = 1
    elif info.animated and row.animation and limits:
        output["frames"] = min(*limits, info.frames)
    if name == "jpg":
        output["encoding"] = "baseline"
    if "lossless" in called and row.lossless and row.quality is not None:
        output["lossless"] = True
    elif "420" in row.subsamplings:
        output["subsampling"] = "444" if output["quality"] >= 90 and "444" in row.subsamplings else "420"
    if name == "png" and "palette" in called:
        depth = called["bitdepth"].whole() if "bitdepth" in called else 8
        output["colors"] = 2 ** max(1, min(depth or 8, 8))
    if (
        row.quality is not None
        and "lossless" not in output
        and "max_bytes" in called
        and called["max_bytes"].whole() > 0
    ):
        output["max_bytes"] = max(100, called["max_bytes"].whole())
        output["ladder"] = (output["quality"], *lower_qualities(quality or _LIMITED_QUALITY))
    return output


def _frame(called: Mapping[str, Filter], info: ImageInfo) -> int:
    """Return the number of the only frame that is kept, or 0 for the first one or all of them."""
    page = called["page"].whole() if info.animated and "page" in called else 0
    return max(1, min(page, info.frames)) - 1


def _unnamed_format(called: Mapping[str, Filter], info: ImageInfo, accepted: Sequence[str]) -> str:
    if accepted:
        animated = [name for name in accepted if name in _ANIMATED]
        return animated[0] if info.animated and animated else accepted[0]
    return info.format if info.format in _FORMATS.values() else "jpg"
