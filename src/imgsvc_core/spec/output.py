"""How the result is encoded."""

from __future__ import annotations

from typing import ClassVar

import attrs

from imgsvc_core.codecs.table import FORMATS, OUTPUT_NAMES
from imgsvc_core.spec.color import WHITE, Color
from imgsvc_core.spec.declare import Operation, param
from imgsvc_core.spec.kinds import Boolean, Choice, HexColor, Integer

_FORMAT_ALIASES = {alias: name for name in OUTPUT_NAMES for alias in FORMATS[name].aliases}


@attrs.frozen(kw_only=True)
class Output(Operation):
    """How the result is encoded."""

    key: ClassVar[str] = "output"
    title: ClassVar[str] = "Output"

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
        "Whether JPEG and PNG show coarse to fine while they load; JPEG does by default, PNG does not.",
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
