"""Limits of the work on one picture, and the checks that refuse more."""

from __future__ import annotations

import math
from typing import Any

import attrs

from imgsvc_core._runtime.docstrings import documented
from imgsvc_core._runtime.jsontext import plain_number, shown
from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import (
    ImageTooLarge,
    MemoryLimitExceeded,
    OutputTooLarge,
    SourceTooLarge,
    TimeLimitExceeded,
    invalid,
)
from imgsvc_core.formats.info import ImageInfo

_MOST_THREADS = 1024


def _check_positive(_limits: Limits, field: attrs.Attribute[Any], value: object) -> None:
    kinds = (int, float) if field.metadata["unit"] == "s" else (int,)
    value = plain_number(value)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < float("inf"):
        expected = "number" if float in kinds else "integer"
        sentence = f"Limits '{field.name}' parameter must be a positive {expected} or null"
        raise invalid(field.name, sentence, f"got {shown(value)}")


def _limit(default: float, unit: str, doc: str) -> Any:
    return attrs.field(default=default, validator=_check_positive, metadata={"doc": doc, "unit": unit})


@documented
@frozen(kw_only=True)
class Limits:
    """The most work that one picture may cause. ``None`` means no limit. Other values must be positive."""

    source_bytes: int | None = _limit(50_000_000, "bytes", "Size of the encoded source.")
    source_pixels: int | None = _limit(
        100_000_000, "pixels", "Pixels of one frame of the source; of a drawing, as it is rendered."
    )
    output_pixels: int | None = _limit(100_000_000, "pixels", "Pixels of one frame of the result.")
    output_side: int | None = _limit(16_384, "pixels", "Longest side of the result.")
    frames: int | None = _limit(500, "frames", "Frames of an animation.")
    frame_pixels: int | None = _limit(300_000_000, "pixels", "Pixels of all frames of an animation together.")
    channels: int | None = _limit(64, "channels", "Stored channels of the source.")
    memory_bytes: int | None = _limit(
        1_800_000_000, "bytes", "Memory that a request may need, as estimated from header and plan."
    )
    seconds: float | None = _limit(30, "s", "Time to process one picture.")

    def __attrs_post_init__(self) -> None:
        # A converter would hide the types of the arguments.
        for name in attrs.fields_dict(Limits):
            object.__setattr__(self, name, plain_number(getattr(self, name)))

    @classmethod
    def none(cls) -> Limits:
        """Return limits that allow everything, for pictures that you trust."""
        return cls(**dict.fromkeys(attrs.fields_dict(cls)))


def limits_or(limits: Limits | None, usual: Limits) -> Limits:
    """Return the given limits or the defaults. Raise `SpecError` if they are not `Limits`."""
    if not isinstance(limits, Limits | None):
        raise invalid(
            "limits", f"Limits must be a Limits object, such as Limits(seconds=5), got {shown(limits)}"
        )
    return usual if limits is None else limits


def check_threads(threads: int | None) -> None:
    """Raise `SpecError` if libvips cannot start this number of threads."""
    whole = hasattr(threads, "__index__") and not isinstance(threads, bool)
    if threads is not None and not (whole and 1 <= threads <= _MOST_THREADS):
        message = f"Threads must be an integer from 1 to {_MOST_THREADS}, or null, got {shown(threads)}"
        raise invalid("threads", message)


def check_bytes(size: int, limits: Limits) -> None:
    """Raise `SourceTooLarge` if the encoded source has more bytes than allowed."""
    if size > (limits.source_bytes or math.inf):
        raise SourceTooLarge(
            f"The source has {size:,} bytes; {_at_most(limits.source_bytes)}: send a smaller file."
        )


def too_long(seconds: float) -> TimeLimitExceeded:
    """Return the error for work that takes longer than the seconds allowed."""
    allowed = f"{in_words(seconds)} that {'is' if seconds == 1 else 'are'} allowed"
    return TimeLimitExceeded(
        f"Processing took longer than the {allowed}: ask for less, or send a smaller image."
    )


def in_words(seconds: float) -> str:
    """Return a time for messages, such as ``1 second``."""
    return f"{seconds:g} second{'' if seconds == 1 else 's'}"


def check_source(info: ImageInfo, limits: Limits) -> None:
    """Refuse a source by the facts of its header, before any pixel is decoded.

    For a drawing, the size at which it is rendered counts; see `check_rendered`. Its bytes were checked when
    they were read.

    Raises `ImageTooLarge` for its pixels or frames.
    """
    pixels = info.width * info.height
    if not info.vector and pixels > (limits.source_pixels or math.inf):
        raise ImageTooLarge(
            f"The source image has {info.width} x {info.height} = {pixels:,} pixels; "
            f"{_at_most(limits.source_pixels)}: send a smaller image."
        )
    if (info.decoded_pixels or 0) > (limits.source_pixels or math.inf):
        raise ImageTooLarge(
            f"The source image of {info.width} x {info.height} pixels is made of {info.decoded_pixels:,}; "
            f"{_at_most(limits.source_pixels)}: send a smaller image."
        )
    if (info.channels or 0) > (limits.channels or math.inf):
        raise ImageTooLarge(
            f"The source image has {info.channels:,} channels; {_at_most(limits.channels)}: "
            "send an image of gray or RGB, with or without alpha."
        )
    if info.frames > (limits.frames or math.inf):
        raise ImageTooLarge(
            f"The source image has {info.frames:,} frames; {_at_most(limits.frames)}: "
            "send a shorter animation."
        )
    if info.animated and pixels * info.frames > (limits.frame_pixels or math.inf):
        raise ImageTooLarge(
            f"The {info.frames:,} frames of the source image have {pixels * info.frames:,} pixels together; "
            f"{_at_most(limits.frame_pixels)}: send a smaller or shorter animation."
        )


def check_rendered(width: int, height: int, limits: Limits) -> None:
    """Raise `ImageTooLarge` if a drawing is to be rendered with more pixels than a source may have."""
    pixels = width * height
    if pixels > (limits.source_pixels or math.inf):
        raise ImageTooLarge(
            f"The drawing would be rendered at {width} x {height} = {pixels:,} pixels; "
            f"{_at_most(limits.source_pixels)}: ask for a smaller size."
        )


def check_memory(needed: int, limits: Limits) -> None:
    """Raise `MemoryLimitExceeded` if a plan could need more bytes than allowed."""
    if needed > (limits.memory_bytes or math.inf):
        raise MemoryLimitExceeded(
            f"The request could need {needed:,} bytes of memory for this image; "
            f"{_at_most(limits.memory_bytes)}: send a smaller image, or ask for a smaller size or "
            "another format."
        )


def check_output(width: int, height: int, frames: int, limits: Limits) -> None:
    """Raise `OutputTooLarge` if a result of that size, in pixels, is larger than allowed."""
    if max(width, height) > (limits.output_side or math.inf):
        raise OutputTooLarge(
            f"The result would be {width} x {height} pixels; {_at_most(limits.output_side)} "
            "per side: ask for a smaller size."
        )
    pixels = width * height
    if pixels > (limits.output_pixels or math.inf):
        raise OutputTooLarge(
            f"The result would have {width} x {height} = {pixels:,} pixels; "
            f"{_at_most(limits.output_pixels)}: ask for a smaller size."
        )
    if frames > (limits.frames or math.inf):
        raise OutputTooLarge(
            f"The result would have {frames:,} frames; {_at_most(limits.frames)}: ask for a still format."
        )
    if frames > 1 and pixels * frames > (limits.frame_pixels or math.inf):
        raise OutputTooLarge(
            f"The {frames:,} frames of the result would have {pixels * frames:,} pixels together; "
            f"{_at_most(limits.frame_pixels)}: ask for a smaller size or a still format."
        )


def _at_most(limit: int | None) -> str:
    return f"at most {limit:,} {'is' if limit == 1 else 'are'} allowed"
