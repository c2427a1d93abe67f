"""The facts of an image and the plan of a request, without touching a pixel."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import attrs

from imgsvc_core._runtime.deadline import Deadline
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.limits import Limits, limits_or
from imgsvc_core.plan import Plan, compile_plan
from imgsvc_core.sources.opening import is_quick, open_source
from imgsvc_core.sources.receiving import Source, is_at_hand, open_bytes, received
from imgsvc_core.spec import Output, Request, parse
from imgsvc_core.spec.facts import FactName, PaletteColor


def inspect(
    source: Source,
    *,
    limits: Limits | None = None,
    name: str | None = None,
    digest: bool = False,
    facts: Collection[FactName] = (),
) -> ImageInfo:
    """Return the facts of an image from its header; no pixels are decoded unless ``facts`` need them.

    Args:
        source: what `process` takes.
        limits: the most that the source may have. Without ``facts``, only bytes and seconds matter, and of
            a drawing the pixels of inlined images and the memory of its elements.
        name: the file name to report if the source has none.
        digest: whether to compute ``sha256``, which reads all bytes.
        facts: names of facts of the pixels, as in ``output.facts`` of a request. They describe the first
            frame as it is shown.

    Raises:
        SpecError: a name in ``facts`` is unknown.
        SourceError: the source cannot be read or is no image.
        SourceTooLarge, ImageTooLarge: it has too many bytes, or a drawing holds images that are too large.
        MemoryLimitExceeded: a drawing has too many elements.
        TimeLimitExceeded: reading the header takes too long, as in a drawing with many style rules.
    """
    usual, facts = Limits(), Output(facts=facts).facts
    deadline = Deadline(limits_or(limits, usual).seconds)
    most = attrs.evolve(
        Limits.none(),
        source_bytes=None if limits is None else limits.source_bytes,
        memory_bytes=limits_or(limits, usual).memory_bytes,
    )
    if facts:
        most = limits_or(limits, usual)
    inlined = limits_or(limits, usual).source_pixels
    source = received(source, most, deadline, name=name)
    if is_at_hand(source):
        source = open_bytes(source, most, name=name)
    if facts:
        from imgsvc_core.pixels.facts.source import inspect_pixels  # loads libvips

        return deadline.run(partial(inspect_pixels, source, facts, most, deadline, name=name, digest=digest))
    read = partial(open_source, source, most, inlined_pixels=inlined, name=name, digest=digest)
    # Handing work to a thread and back takes longer than reading most headers.
    opened = read() if isinstance(source, ByteSource) and is_quick(source) else deadline.run(read)
    return opened.info


def palette(source: Source, *, limits: Limits | None = None) -> list[PaletteColor]:
    """Return the main colors of an image with their shares, the largest first.

    Raises what `inspect` raises.
    """
    wanted: FactName = "palette"
    colors: list[PaletteColor] = inspect(source, limits=limits, facts=[wanted]).facts[wanted]
    return colors


def explain(
    spec: Request, source: ImageInfo | Source, *, limits: Limits | None = None, suffix: str = ""
) -> Plan:
    """Return the plan of a request for a source or for its facts. ``print(plan)`` explains it.

    ``suffix`` is the suffix of the target's name. Faces and borders are not searched for: the plan assumes a
    picture without them.

    Raises:
        SourceError: the source cannot be read or is no image.
        SpecError: the request is wrong, or ``limits`` is not `Limits`.
        ImageTooLarge: a drawing would be rendered with too many pixels.
        OutputTooLarge: the result would have too many pixels.
        MemoryLimitExceeded: the plan could need too much memory.
    """
    info = source if isinstance(source, ImageInfo) else inspect(source, limits=limits)
    return compile_plan(parse(spec), info, limits=limits_or(limits, Limits()), suffix=suffix)
