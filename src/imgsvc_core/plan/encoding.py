"""Which format the result has, and how it is written."""

from __future__ import annotations

from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import FORMATS, Format, by_suffix
from imgsvc_core.info import ImageInfo
from imgsvc_core.spec import Output

_PROGRESSIVE = {None: None, "progressive": True, "baseline": False}


def candidates(
    output: Output, info: ImageInfo, *, suffix: str = "", accept: str | None = None, alpha: bool = False
) -> tuple[Format, ...]:
    """The formats to write; with several, the smallest file is taken.

    The request decides, then the suffix of the target, then the format of the source. ``auto`` takes what an
    HTTP ``Accept`` header allows, best first, and without one the smaller of what every browser shows.
    """
    if output.format == "auto":
        return _smallest_suitable(info, accept, alpha=alpha)
    if output.format is not None:
        return (FORMATS[output.format],)
    row = by_suffix(suffix)
    if row is not None and row.writable:
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


def _smallest_suitable(info: ImageInfo, accept: str | None, *, alpha: bool) -> tuple[Format, ...]:
    classic = "gif" if info.animated else "png" if alpha else "jpg"
    if accept is None:
        return FORMATS["webp"], FORMATS[classic]
    accepted = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    modern = [name for name in ("avif", "webp") if FORMATS[name].media_type in accepted]
    if info.animated:
        modern = [name for name in modern if FORMATS[name].animation]
    return (FORMATS[modern[0] if modern else classic],)
