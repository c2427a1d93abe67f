"""Measure the facts of a picture that a request asks for, such as its palette or a placeholder.

All facts are measured on small copies of the first frame in 8 bits of sRGB, upright. So facts of one picture
in different sizes are alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pyvips

from imgsvc_core.formats.raster import Raster
from imgsvc_core.pixels.facts.working_copy import WorkingCopy
from imgsvc_core.spec.color import Color
from imgsvc_core.spec.facts import FACTS, FactName


def measure(image: pyvips.Image | Raster, names: Iterable[FactName], background: Color) -> dict[str, Any]:
    """Return facts by name, as JSON values.

    Args:
        image: a picture in memory, in sRGB or gray, upright, with straight alpha.
        names: the names of the facts.
        background: the color under transparent pixels, for facts that know no transparency.
    """
    copy = WorkingCopy.of(image, background)
    return {name: _function(FACTS[name].pixels)(copy) for name in names}


def _function(name: str) -> Any:
    module, function = name.split(":")
    return getattr(import_module(f"{__name__}.{module}"), function)
