"""A picture laid over the picture."""

from __future__ import annotations

from typing import ClassVar

import attrs

from imgsvc_core.spec.declare import Operation, param
from imgsvc_core.spec.geometry import EDGES, OFFSET, PIXELS
from imgsvc_core.spec.kinds import Boolean, Choice, Number, Text
from imgsvc_core.spec.rules import Needs, NotTogether, Rule


@attrs.frozen(kw_only=True)
class Watermark(Operation):
    """Lay a watermark over the picture; it is never enlarged.

    Without gravity and position it is centred. A watermark larger than the picture is clipped, unless
    ``fit`` is set. ``width`` and ``height`` apply after ``scale``.
    """

    key: ClassVar[str] = "watermark"
    title: ClassVar[str] = "Watermark"
    rules: ClassVar[tuple[Rule, ...]] = (
        NotTogether(("gravity",), ("x", "y")),
        Needs("padding", "gravity"),
    )

    id: str = param(Text(200), "Id of the watermark picture.")
    gravity: str | None = param(
        Choice(EDGES),
        "Edge or corner of the picture where it lies; the centre by default.",
        default=None,
    )
    padding: int | None = param(
        PIXELS, "Distance from the edges that gravity names; none by default.", unit="pixels", default=None
    )
    x: int | None = param(
        OFFSET, "Exact position of its left edge, instead of gravity.", unit="pixels", default=None
    )
    y: int | None = param(
        OFFSET, "Exact position of its top edge, instead of gravity.", unit="pixels", default=None
    )
    opacity: float = param(Number(0.01, 1), "Opacity; its own by default.", default=1.0)
    scale: float = param(Number(0.01, 1), "Factor by which it is reduced.", default=1.0)
    width: int | None = param(PIXELS, "Largest width.", unit="pixels", default=None)
    height: int | None = param(PIXELS, "Largest height.", unit="pixels", default=None)
    fit: bool = param(
        Boolean(), "Whether a watermark larger than the picture is reduced to fit inside.", default=False
    )
