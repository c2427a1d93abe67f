"""Facts of the pictures that tests ask requests for."""

from __future__ import annotations

from typing import Any

import imgsvc_core as imgsvc
from imgsvc_urls.dialects import ForeignUrl

PHOTO = imgsvc.ImageInfo(
    format="jpg", width=2725, height=2225, colorspace="srgb", bytes=800_000, subsample="4:2:0"
)
DRAWN = imgsvc.ImageInfo(format="png", width=400, height=300, colorspace="srgb", bytes=9000, alpha=True)


def facts(format: str, width: int, height: int, **more: Any) -> imgsvc.ImageInfo:
    """Facts of a picture."""
    return imgsvc.ImageInfo(format=format, width=width, height=height, colorspace="srgb", bytes=1000, **more)


def planned_size(url: ForeignUrl, info: imgsvc.ImageInfo = PHOTO) -> tuple[int, int]:
    """The size of the result of a URL."""
    spec = url.spec(info)
    assert spec is not None
    return tuple(imgsvc.explain(spec, info).size)  # type: ignore[return-value]


def document(url: ForeignUrl, info: imgsvc.ImageInfo = PHOTO) -> dict[str, Any]:
    """The request of a URL as JSON, without its output."""
    spec = url.spec(info)
    assert spec is not None
    return {name: part for name, part in imgsvc.unparse(spec).items() if name != "output"}


def kept_at(url: ForeignUrl, info: imgsvc.ImageInfo = PHOTO) -> tuple[int, int] | None:
    """Left and top of what a URL keeps of the scaled picture, or `None` for the most interesting part."""
    resize = document(url, info)["resize"]
    assert "kept_size" in resize
    return tuple(resize["kept_at"]) if "kept_at" in resize else None


def output(url: ForeignUrl, info: imgsvc.ImageInfo = PHOTO) -> dict[str, Any]:
    """The output of the request of a URL."""
    spec = url.spec(info)
    assert spec is not None
    found: dict[str, Any] = imgsvc.unparse(spec)["output"]
    return found
