"""The format and the quality of a result, as thumbor chooses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_urls.dialects.building import animates, lower_qualities
from imgsvc_urls.dialects.thumbor.filters import Filter

_FORMATS = {
    "png": "png", "jpeg": "jpg", "jpg": "jpg", "gif": "gif", "webp": "webp", "avif": "avif", "heic": "heic",
    "heif": "heic",
}  # fmt: skip
MEDIA_TYPES = {"jpg": ("image/jpeg", "image/jpg", "*/*"), "heic": ("image/heif",)}
"""The media types of which clients must accept one, if they are others than the format's own."""

_HEIC_QUALITY = 75
_WITH_MAX_BYTES = ("jpg", "webp")
_LEAST_QUALITY = 10  # of those that are tried to fit into a number of bytes
_LARGEST_WEBP = 16_383


@attrs.frozen(kw_only=True)
class Encoding:
    """What settings say about results."""

    qualities: tuple[tuple[str, int], ...]
    quality: int
    progressive: bool
    metadata: str
    png_to_jpg: bool

    def output(
        self, filters: Iterable[Filter], info: ImageInfo, accepted: Sequence[str], *, opaque: bool
    ) -> dict[str, Any]:
        """Return how a result is encoded.

        Args:
            filters: the filters of the URL.
            info: the facts of the picture.
            accepted: formats for a URL without one, as the client accepts them, the preferred one first.
            opaque: whether no pixel of the result is transparent.
        """
        asked = {item.name: item.arguments for item in filters}
        format_ = named_format(filters) or self._unnamed_format(info, accepted, opaque=opaque)
        row = FORMATS[format_]
        output: dict[str, Any] = {"format": format_, "metadata": self.metadata}
        if ("cover" in asked and info.format == "gif") or (
            info.animated and row.animation and not animates(format_)
        ):
            output["frames"] = 1
        if row.quality is not None:
            usual = {"heic": _HEIC_QUALITY, **dict(self.qualities)}.get(format_, self.quality)
            quality = int(asked["quality"][0]) if "quality" in asked else usual
            output["quality"] = min(100, max(1, quality))
        if format_ == "gif":
            output["palettes"] = "pillow"
        if format_ == "jpg":
            output["encoding"] = "progressive" if self.progressive else "baseline"
        limited = format_ in _WITH_MAX_BYTES and "max_bytes" in asked
        if format_ == "webp" and output["quality"] == 100 and not limited:
            output["lossless"] = True
        elif "420" in row.subsamplings:
            output["subsampling"] = "420"
        if limited:
            output["max_bytes"] = max(100, int(asked["max_bytes"][0]))
            output["ladder"] = _ladder(output["quality"])
        return output

    def looks_for_alpha(self, filters: Iterable[Filter], info: ImageInfo, accepted: Sequence[str]) -> bool:
        """Return True if the format depends on whether any pixel is transparent."""
        formats = (self.output(filters, info, accepted, opaque=opaque)["format"] for opaque in (True, False))
        return len(set(formats)) > 1

    def _unnamed_format(self, info: ImageInfo, accepted: Sequence[str], *, opaque: bool) -> str:
        still = not info.animated
        suits = {
            "webp": still and max(info.width, info.height) <= _LARGEST_WEBP,
            "avif": still,
            "jpg": still and opaque,
            "heic": still,
            "png": still,
        }
        chosen = [name for name in accepted if suits[name]]
        if self.png_to_jpg and info.format == "png" and opaque and not {"webp", "avif"} & {*chosen[:1]}:
            return "jpg"
        return chosen[0] if chosen else "png" if info.format == "tiff" else FORMATS[info.format].becomes


def _ladder(quality: int) -> tuple[int, ...]:
    """Return the qualities that thumbor tries, three quarters of the last one each, and then the first."""
    lower = (tried for tried in lower_qualities(quality) if tried >= _LEAST_QUALITY)
    return (quality, *lower, quality)


def named_format(filters: Iterable[Filter]) -> str | None:
    """Return the format that the last filter ``format`` names, if it is known."""
    named = [item.arguments[0] for item in filters if item.name == "format"]
    return _FORMATS.get(named[-1].lower()) if named else None
