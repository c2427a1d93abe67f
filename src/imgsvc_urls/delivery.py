"""Options of URLs that are about the delivery, not about the picture."""

import re
from typing import ClassVar

import attrs

from imgsvc_core.spec.declare import Parameters, declared, param, params
from imgsvc_core.spec.kinds import Integer, Number, Text
from imgsvc_core.spec.options import OPTIONS
from imgsvc_core.spec.presets import PRESET

_LATEST = 253_402_300_799  # the end of the year 9999


@attrs.frozen
class FileName(Text):
    """The name of a file, without a folder."""

    @property
    def expectation(self) -> str:
        return f"file name of {self.minimum} to {self.maximum} characters, without slashes"

    def parse(self, value: object) -> str:
        name = super().parse(value)
        if re.search(r"[\x00-\x1f\x7f/\\\ud800-\udfff]", name):
            raise ValueError(value)
        return name


@declared
class Delivery(Parameters):
    """How the picture of a URL is delivered."""

    title: ClassVar[str] = "URL"

    dpr: float | None = param(
        "Pixel density of the screen; multiplies all sizes in pixels except those of the crop. By "
        "default that of a client hint, or 1.",
        Number(0.1, 5),
        default=None,
    )
    expires: int | None = param(
        "When the URL stops working.", Integer(0, _LATEST), unit="seconds since 1970", default=None
    )
    version: str | None = param(
        "Any text. With a new one the URL is new, too: no cache has an old picture for it, and the source is "
        "fetched again.",
        Text(100),
        default=None,
    )
    filename: str | None = param("Name under which browsers save the picture.", FileName(200), default=None)
    download: bool = param("Whether browsers save the picture instead of showing it.", default=False)


URL_OPTIONS = frozenset({*OPTIONS, *params(Delivery), PRESET})
"""The names of all options of URLs."""
