"""The pointwise steps that a request asks for."""

from __future__ import annotations

from imgsvc_core.plan.color.steps import ColorStep, adjustment, filtering
from imgsvc_core.spec import Adjust, Filter


def color_steps(adjust: Adjust, *filters: Filter) -> list[ColorStep]:
    """The steps of adjustments and filters, in the order of application."""
    found = [*(adjustment(*item) for item in adjust.active()), *map(filtering, filters)]
    return [step for step in found if step is not None]
