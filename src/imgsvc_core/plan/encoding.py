"""The format of the result, and its settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec

import attrs

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.errors import UnsupportedOperation
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import MOST_EXAMINED, SaveSettings
from imgsvc_core.formats.table import FORMATS, Format, by_suffix
from imgsvc_core.plan.geometry import Size
from imgsvc_core.plan.steps import PlannedStep
from imgsvc_core.spec import Output

_PROGRESSIVE = {None: None, "progressive": True, "baseline": False}
_EXACT = {False: ("webp", "png"), True: ("webp", "apng")}  # if animated; AVIF gains little without loss
_HAS_JXL = find_spec("imagecodecs") is not None
_WEIGHT = pattern(r"0(\.\d{0,3})?|1(\.0{0,3})?", re.ASCII)


def choose_formats(
    output: Output, info: ImageInfo, *, suffix: str = "", accept: str | None = None, alpha: bool = False
) -> tuple[tuple[type[Format], ...], str]:
    """Return the formats to write, and the reason for them.

    The request decides, then the suffix of the target, then the format of the source. ``auto`` takes the
    formats that an HTTP ``Accept`` header allows and prefers, or without a header those that every browser
    shows. These formats are for photographs; `exact_formats` returns the formats for graphics. If there are
    several, the file that loses the least quality to fit is written, and of equal ones the smallest.
    """
    if output.internal_format is not None:
        return (FORMATS[output.internal_format],), "as asked for"
    if output.format == "auto":
        fits = output.max_bytes is not None and output.promised is None
        best = "best suitable" if fits else "smallest suitable"
        why = f"the {best}" if accept is None else "the best of what is accepted"
        suitable = _suitable(info, accept, alpha=alpha, lossless=output.lossless)
        if output.promised is not None:
            return _for_photographs(suitable, info), why
        return suitable[:2] if accept is None else suitable[:1], why
    if output.format is not None:
        return (FORMATS[output.format],), "as asked for"
    row = by_suffix(suffix)
    if suffix and (row is None or not row.writable):
        told = f"Images cannot be written as '{row.name}'" if row else f"No format has the suffix '{suffix}'"
        raise UnsupportedOperation(f"{told}; name the target otherwise, or set output.format.")
    if row is not None:
        named = FORMATS[info.format] if row.animated == info.format else row
        return (named,), f"the target ends in {suffix}"
    source = FORMATS.get(info.format)
    if output.transcode and source is not None and source.transcodes is not None:
        return (FORMATS[source.transcodes],), f"what {source.title} is rewrapped as, or taken out of"
    if source is not None and source.becomes == source.name:
        return (source,), "the format of the source"
    default = FORMATS[source.becomes if source else "apng" if info.animated else "png"]
    title = source.title if source else "a picture in memory"
    return (default,), f"what {title} becomes unless told otherwise"


def exact_formats(
    output: Output,
    info: ImageInfo,
    size: Size,
    *,
    photograph: bool,
    accept: str | None = None,
    alpha: bool = False,
) -> tuple[type[Format], ...]:
    """Return the formats in which ``auto`` keeps every pixel if the picture turns out to be a graphic.

    Return none for large pictures, which always count as photographs.
    """
    pixels = size.width * size.height * info.frames
    if output.format != "auto" or photograph or pixels > MOST_EXAMINED:
        return ()
    suitable = _suitable(info, accept, alpha=alpha, lossless=output.lossless)
    usual = [row for row in suitable if row.name in _EXACT[info.animated]]
    return tuple(usual or (row for row in suitable if _is_exact(row, info)))


def is_photograph(info: ImageInfo, steps: Iterable[PlannedStep]) -> bool:
    """Return True if color has a lower resolution, as in photographs only, and no step makes a graphic."""
    return info.subsample not in (None, "4:4:4") and not any(planned.traits.stylizes for planned in steps)


def settings_for(
    row: type[Format], output: Output, *, photograph: bool, redacted: bool = False
) -> SaveSettings:
    """Return the settings of the writer, without those that the format does not support."""
    subsampling = output.subsampling if output.subsampling in row.subsamplings else None
    return SaveSettings(
        format=row.name,
        quality=None if output.quality == "auto" else output.quality,
        progressive=_PROGRESSIVE[output.encoding],
        lossless=output.lossless and row.quality is not None,
        effort=output.effort,
        subsampling=None if subsampling == "auto" else subsampling,
        colors=output.colors if row.palette else None,
        metadata=output.policy,
        max_bytes=output.max_bytes,
        look=output.promised,
        ladder=output.ladder or (),
        depth=output.depth,
        palettes=output.palettes,
        photograph=photograph,
        redacted=redacted,
    )


def exactly(settings: SaveSettings) -> SaveSettings:
    """Return settings that keep every pixel, for a format that supports this."""
    lossless = FORMATS[settings.format].quality is not None
    return attrs.evolve(settings, lossless=lossless, subsampling=None)


def text(save: Sequence[SaveSettings], save_exactly: Sequence[SaveSettings]) -> str:
    """Describe the encoding of the result."""
    choice = ""
    if len(save) > 1:
        fits = save[0].max_bytes is not None and save[0].look is None
        choice = ", whichever gives up less of its quality to fit" if fits else ", whichever is smaller"
    exact = [_described(settings) for settings in save_exactly if settings not in save]
    graphics = f"; graphics {' or '.join(exact)}" if exact else ""
    return " or ".join(map(_described, save)) + choice + graphics


def _described(settings: SaveSettings) -> str:
    row = FORMATS[settings.format]
    quality = row.quality if settings.quality is None else settings.quality
    promised = settings.look is not None and not settings.lossless and (row.quality or not row.lossless)
    details = [
        "lossless" if settings.lossless else f"quality {quality}" if row.quality and not promised else "",
        f"look {settings.look:g}" if promised else "",
        "progressive" if row.interlaces and settings.progressive else "",
        f"color {':'.join(settings.subsampling)}" if settings.subsampling else "",
        f"at most {settings.colors} colors" if settings.colors else "",
        "" if settings.effort is None else f"effort {settings.effort}",
        "" if settings.max_bytes is None else f"at most {settings.max_bytes:,} bytes",
    ]
    return ", ".join([row.title, *filter(None, details)])


def _suitable(
    info: ImageInfo, accept: str | None, *, alpha: bool, lossless: bool
) -> tuple[type[Format], ...]:
    """Return the formats that suit a picture equally. Without ``accept``, those of photographs come first."""
    classic = FORMATS["gif" if info.animated else "png" if alpha or lossless else "jpg"]
    if accept is None:
        return tuple(dict.fromkeys((FORMATS["webp"], classic, *(() if info.animated else (FORMATS["png"],)))))
    widespread = [row for row in FORMATS.values() if row.widespread]
    has_jxl = _HAS_JXL and not info.animated  # of an animated JPEG XL, browsers show one frame
    newer = [FORMATS["avif"], *([FORMATS["jxl"]] if has_jxl else []), FORMATS["webp"]]
    ordered = dict.fromkeys([*newer, classic, *widespread, FORMATS["apng"]])
    weights = accept_weights(accept)
    acceptable = {row: weight for row in ordered if (weight := _weight(row, weights)) > 0}

    def rank(row: type[Format]) -> tuple[bool, bool, bool, bool, float]:
        """Return the sort key of a format: first what the picture needs, then what the client prefers."""
        keeps_motion, keeps_alpha = row.animation or not info.animated, row.alpha or not alpha
        keeps_exactly = _is_exact(row, info) or not lossless
        colorful = row.colorful or row is classic
        return keeps_motion, keeps_alpha, keeps_exactly, colorful, acceptable[row]

    if acceptable:
        best = max(map(rank, acceptable))
        return tuple(row for row in acceptable if rank(row) == best)
    refused = {range_ for range_, weight in weights.items() if weight == 0}
    bearable = [row for row in (classic, *widespread, *ordered) if row.media_type not in refused]
    return ((*bearable, classic)[0],)


def _is_exact(row: type[Format], info: ImageInfo) -> bool:
    """Return True if a format can store the picture exactly."""
    return row.lossless and (row.exact_animation or not info.animated)


def _for_photographs(suitable: Sequence[type[Format]], info: ImageInfo) -> tuple[type[Format], ...]:
    """Return the formats to try for a look. Photographs without loss are never the smallest."""
    lossy = [row for row in suitable if row.quality is not None or (info.animated and not row.lossless)]
    return tuple(lossy or suitable[:1])


def _weight(row: type[Format], weights: Mapping[str, float]) -> float:
    """Return the weight of a format for a client, by the most specific of its ranges (RFC 9110, 12.5.1).

    Ranges such as ``*/*`` come from clients that do not know newer formats, so they do not include these.
    """
    ranges = (row.media_type, *(("image/*", "*/*") if row.widespread else ()))
    return next((weights[range_] for range_ in ranges if range_ in weights), 0.0)


def accept_weights(accept: str) -> dict[str, float]:
    """Return the ranges of an ``Accept`` header with their weights, without those whose weight is invalid."""
    weights: dict[str, float] = {}
    for item in accept.lower().split(","):
        range_, *parameters = (part.strip() for part in item.split(";"))
        given = [text.removeprefix("q=") for text in parameters if text.startswith("q=")]
        weight = given[0] if given else "1"
        if _WEIGHT.fullmatch(weight):
            weights[range_] = float(weight)
    return weights
