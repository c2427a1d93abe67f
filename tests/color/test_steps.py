"""What is declared of each curve holds for its formula."""

from __future__ import annotations

import numpy as np
import pytest

from imgsvc_core.plan.color.curves import FORMULAS, apply_curves
from imgsvc_core.plan.color.steps import CURVES, Curve, CurveStep

RAMP = np.linspace(0, 1, 256)[:, None].repeat(3, 1)
VALUES = {name: (0.2, 0.7) if name == "levels" else () if name == "invert" else (-30,) for name in CURVES}


def test_every_curve_has_a_formula() -> None:
    assert FORMULAS.keys() == CURVES.keys()


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_is_neutral_at_its_neutral_values_only(name: str) -> None:
    assert not CurveStep(name, VALUES[name]).neutral
    neutral = CURVES[name].neutral
    if neutral is not None:
        assert CurveStep(name, neutral).neutral
        np.testing.assert_allclose(apply_curves(RAMP, [(name, neutral)]), RAMP, atol=1e-12)


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_that_casts_color_differs_between_channels(name: str) -> None:
    curved = apply_curves(RAMP, [(name, VALUES[name])])
    assert bool(np.ptp(curved, axis=1).max() > 1e-6) == CurveStep(name, VALUES[name]).brings_color


def test_a_curve_may_change_pixels_at_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CURVES, "solarize", Curve(neutral=(1,)))  # type: ignore[arg-type]  # read-only for types
    assert not CurveStep("solarize", (0,)).neutral
    assert CurveStep("solarize", (1,)).neutral
