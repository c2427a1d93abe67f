"""The answer to ``meta``: what is done to a picture, as JSON with the fields of thumbor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan.geometry import Box
from imgsvc_urls.dialects import Document
from imgsvc_urls.dialects.thumbor.geometry import FocalArea, Layout, focal_points, is_cut
from imgsvc_urls.dialects.thumbor.path import Parts
from imgsvc_urls.dialects.thumbor.request import Drawn


def document(
    drawn: Drawn,
    parts: Parts,
    info: ImageInfo,
    *,
    image: str,
    trimmed: Box | None,
    focal: Iterable[FocalArea],
) -> Document:
    """Return the answer. As in thumbor, the size of the source is that after all filters.

    Args:
        drawn: what the URL asks of the picture.
        parts: the parts of the URL.
        info: the facts of the picture.
        image: the image as the URL names it.
        trimmed: what a trim has left.
        focal: what should stay visible.
    """
    layout, done = drawn.layout, drawn.drawing.size
    operations = [
        *([] if trimmed is None else [_crop(trimmed)]),
        *_operations(layout, parts),
        *([{"type": "auto_png_to_jpg_conversion"}] if drawn.converted else []),
    ]
    sized = [item for item in operations if "width" in item or "right" in item]
    points = focal_points(parts, layout.cropped, focal)
    found = {
        "source": {"url": image, "width": done.width, "height": done.height, "frameCount": info.frames},
        "operations": operations,
        "target": _size(sized[-1]) if sized else {"width": done.width, "height": done.height},
        "focal_points": [
            {"x": point.x, "y": point.y, "z": point.weight, "height": point.height, "width": point.width,
             "origin": point.origin}
            for point in points
        ],
    }  # fmt: skip
    return Document(json.dumps({"thumbor": found}).encode())


def _operations(layout: Layout, parts: Parts) -> list[dict[str, Any]]:
    operations = []
    if is_cut(parts, layout.cropped):
        operations.append(_crop(layout.cropped))
    if layout.part != layout.cropped:
        operations.append(_crop(layout.part.shifted(-layout.cropped.left, -layout.cropped.top)))
    if layout.size != layout.part.size or (parts.fit_in and parts.full):
        operations.append({"type": "resize", "width": layout.size.width, "height": layout.size.height})
    names = ("flip_horizontally", "flip_vertically")
    operations += [{"type": name} for name, flips in zip(names, parts.flip, strict=True) if flips]
    return operations


def _crop(box: Box) -> dict[str, Any]:
    return {"type": "crop", "left": box.left, "top": box.top, "right": box.right, "bottom": box.bottom}


def _size(operation: dict[str, Any]) -> dict[str, int]:
    if "right" in operation:
        width, height = operation["right"] - operation["left"], operation["bottom"] - operation["top"]
        return {"width": width, "height": height}
    return {"width": operation["width"], "height": operation["height"]}
