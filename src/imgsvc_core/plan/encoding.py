"""Which format the result has, and how it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping

from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import FORMATS, Format, by_suffix
from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.info import ImageInfo
from imgsvc_core.spec import Output

_PROGRESSIVE = {None: None, "progressive": True, "baseline": False}
_WIDESPREAD = ("jpg", "png", "gif")  # what every client shows
_PALETTES = ("gif",)
_WEIGHT = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?", re.ASCII)


def candidates(
    output: Output, info: ImageInfo, *, suffix: str = "", accept: str | None = None, alpha: bool = False
) -> tuple[Format, ...]:
    """The formats to write; with several, the one that gives up the least quality to fit, or is the smallest.

    The request decides, then the suffix of the target, then the format of the source. ``auto`` takes what an
    HTTP ``Accept`` header allows and prefers, and without one what every browser shows.
    """
    if output.format == "auto":
        return _suitable(info, accept, alpha=alpha, lossless=output.lossless)
    if output.format is not None:
        return (FORMATS[output.format],)
    row = by_suffix(suffix)
    if suffix and (row is None or not row.writable):
        told = f"Images cannot be written as '{row.name}'" if row else f"No format has the suffix '{suffix}'"
        raise UnsupportedOperation(f"{told}; name the target otherwise, or set output.format.")
    if row is not None:
        still_to_apng = row.name == "png" and info.format == "apng"
        return (FORMATS["apng"] if still_to_apng else row,)
    return (FORMATS[FORMATS[info.format].becomes if info.format in FORMATS else "png"],)


def settings_for(row: Format, output: Output) -> SaveSettings:
    """What the writer is told."""
    return SaveSettings(
        format=row.name,
        quality=output.quality,
        progressive=_PROGRESSIVE[output.encoding],
        lossless=output.lossless and row.quality is not None,
        effort=output.effort,
        metadata=output.metadata,  # type: ignore[arg-type]
        max_bytes=output.max_bytes,
    )


def _suitable(info: ImageInfo, accept: str | None, *, alpha: bool, lossless: bool) -> tuple[Format, ...]:
    classic = FORMATS["gif" if info.animated else "png" if alpha or lossless else "jpg"]
    if accept is None:
        return FORMATS["webp"], classic
    widespread = [FORMATS[name] for name in _WIDESPREAD]
    ordered = dict.fromkeys([FORMATS["avif"], FORMATS["webp"], classic, *widespread, FORMATS["apng"]])
    weights = _weights(accept)
    acceptable = {row: weight for row in ordered if (weight := _weight(row, weights)) > 0}

    def rank(row: Format) -> tuple[bool, bool, bool, bool, float]:
        """What the picture needs comes first, then what the client prefers."""
        keeps_motion, keeps_alpha = row.animation or not info.animated, row.alpha or not alpha
        keeps_exactly = row.lossless or not lossless
        colorful = row.name not in _PALETTES or row is classic
        return keeps_motion, keeps_alpha, keeps_exactly, colorful, acceptable[row]

    if acceptable:
        return (max(acceptable, key=rank),)
    refused = {range_ for range_, weight in weights.items() if weight == 0}
    bearable = [row for row in (classic, *widespread, *ordered) if row.media_type not in refused]
    return ((*bearable, classic)[0],)


def _weight(row: Format, weights: Mapping[str, float]) -> float:
    """How much a client wants a format: as the most specific of its ranges says (RFC 9110, 12.5.1).

    Ranges such as ``*/*`` come from clients that know nothing of newer formats, and do not stand for them.
    """
    ranges = (row.media_type, *(("image/*", "*/*") if row.name in _WIDESPREAD else ()))
    return next((weights[range_] for range_ in ranges if range_ in weights), 0.0)


def _weights(accept: str) -> dict[str, float]:
    """The ranges of an ``Accept`` header with their weights; a range whose weight is none is left out."""
    weights: dict[str, float] = {}
    for item in accept.lower().split(","):
        range_, *parameters = (part.strip() for part in item.split(";"))
        given = [text.removeprefix("q=") for text in parameters if text.startswith("q=")]
        weight = given[0] if given else "1"
        if _WEIGHT.fullmatch(weight):
            weights[range_] = float(weight)
    return weights
