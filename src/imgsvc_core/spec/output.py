"""How the result is encoded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import attrs

from imgsvc_core.codecs.table import FORMATS, OUTPUT_NAMES
from imgsvc_core.spec.color import WHITE, Color
from imgsvc_core.spec.declare import Operation, param
from imgsvc_core.spec.kinds import Boolean, Choice, HexColor, Integer
from imgsvc_core.spec.rules import NotWhen, Rule

_FORMAT_ALIASES = {alias: name for name in OUTPUT_NAMES for alias in FORMATS[name].aliases}


def _spellings(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(spelling for name in names for spelling in (name, *FORMATS[name].aliases))


def _without(ability: str) -> tuple[str, ...]:
    return _spellings(name for name in OUTPUT_NAMES if not getattr(FORMATS[name], ability))


@attrs.frozen(kw_only=True)
class Output(Operation):
    """How the result is encoded.

    A parameter that the named format cannot heed is an error. Where the format is chosen at run time, what it
    cannot heed is left aside.
    """

    key: ClassVar[str] = "output"
    title: ClassVar[str] = "Output"
    rules: ClassVar[tuple[Rule, ...]] = (
        NotWhen("format", _without("quality"), ("quality",)),
        NotWhen("format", _without("interlaces"), ("encoding",)),
        NotWhen("format", _without("lossless"), ("lossless",)),
        NotWhen("format", _without("effort"), ("effort",)),
    )

    format: str | None = param(
        Choice((*OUTPUT_NAMES, "auto"), _FORMAT_ALIASES),
        "File format; the source's own by default, where it can be written; auto takes the smallest.",
        default=None,
    )
    quality: int | None = param(
        Integer(1, 100), "Quality of lossy formats; the default of the format otherwise.", default=None
    )
    encoding: str | None = param(
        Choice(("baseline", "progressive")),
        "Whether JPEG, PNG and GIF show coarse to fine while they load; by default JPEG alone does.",
        default=None,
    )
    lossless: bool = param(Boolean(), "Store pixels exactly, where the format can.", default=False)
    effort: int | None = param(
        Integer(0, 9),
        "Time spent on a smaller file, from least to most; the default of the format otherwise.",
        default=None,
    )
    metadata: str = param(
        Choice(("strip", "copyright", "keep")),
        "strip keeps the colour profile alone; copyright also the author's name and rights; keep everything.",
        default="strip",
    )
    background: Color = param(
        HexColor(alpha=False), "Colour under transparent pixels where the format has no alpha.", default=WHITE
    )
    max_bytes: int | None = param(
        Integer(100, 1_000_000_000),
        "Largest size of the file; the best quality that fits is taken.",
        unit="bytes",
        default=None,
    )
