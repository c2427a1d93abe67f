"""Measure the facts of a source, which is decoded no larger than they need."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from imgsvc_core._runtime.deadline import Deadline, in_memory
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.limits import Limits, check_memory
from imgsvc_core.pixels import colorspace, resampling
from imgsvc_core.pixels.facts import measure
from imgsvc_core.plan.decoding import scale_for
from imgsvc_core.plan.memory import decoded_bound
from imgsvc_core.sources.opening import open_source
from imgsvc_core.sources.receiving import Source
from imgsvc_core.spec.color import WHITE
from imgsvc_core.spec.facts import FactName

_DECODED_SIDE = 427  # pixels of the longer side; decoders leave an eighth more, so 1.25 of what facts need


def inspect_pixels(
    source: Source,
    facts: Iterable[FactName],
    limits: Limits,
    deadline: Deadline,
    *,
    name: str | None,
    digest: bool,
) -> ImageInfo:
    """Return the facts of a source: those from its header, and those of its pixels that are asked for."""
    opened = open_source(source, limits, inlined_pixels=limits.source_pixels, name=name, digest=digest)
    info = opened.info
    scale = scale_for(info, max(1.0, max(info.width, info.height) / _DECODED_SIDE), all_frames=False)
    settings = LoadSettings(scale=scale, sequential=True)
    check_memory(decoded_bound(info, settings), limits)
    with translate_errors(info.format), deadline.watching(opened.load_image(settings)) as frame:
        upright = resampling.turn(in_memory(colorspace.to_srgb(frame, info.rgb_space)), info.orientation)
        found = measure(in_memory(upright), facts, WHITE)
    return attrs.evolve(info, facts=found)
