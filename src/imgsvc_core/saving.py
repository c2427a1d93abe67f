"""A rendered image is encoded, in the format that suits it best."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pyvips

from imgsvc_core.codecs.settings import SaveSettings
from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.codecs.writers import Encoded, save
from imgsvc_core.deadline import in_memory
from imgsvc_core.errors import BudgetUnreachable, OutputTooLarge


def save_best(image: pyvips.Image, candidates: Iterable[SaveSettings]) -> Encoded:
    """Encode an image in several formats, and return the file that gives up the least of its quality to fit.

    Of several such files the smallest is taken. A format that cannot hold the image is no failure as long as
    another one can.
    """
    image = in_memory(image)
    fitting: list[tuple[int, int, Encoded]] = []
    refusals: list[BudgetUnreachable | OutputTooLarge] = []
    for settings in candidates:
        try:
            encoded = save(image, settings)
        except (BudgetUnreachable, OutputTooLarge) as refusal:
            refusals.append(refusal)
        else:
            fitting.append((_given_up(settings, encoded), encoded.size, encoded))
    if not fitting:
        raise min(refusals, key=lambda refusal: getattr(refusal, "smallest", math.inf))
    return min(fitting, key=lambda found: found[:2])[2]


def _given_up(settings: SaveSettings, encoded: Encoded) -> int:
    """Return by how much the quality is lower than the one that is asked for."""
    asked = FORMATS[settings.format].quality if settings.quality is None else settings.quality
    return 0 if asked is None or encoded.quality is None else asked - encoded.quality
