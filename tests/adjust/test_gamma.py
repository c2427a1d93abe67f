"""``gamma``: a power law on encoded values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adjust.exact import COLORS, levels_off, run, unit
from tests.support.photos import ramp


def test_0_is_neutral() -> None:
    assert (run(COLORS, gamma=0) == COLORS).all()


@pytest.mark.parametrize("value", [-100, -40, 25, 100])
def test_is_a_power_that_keeps_the_ends(value: int) -> None:
    result = run(COLORS, gamma=value)
    assert levels_off(result, unit(COLORS) ** (2 ** (-value / 100))) <= 0.51
    assert (result[COLORS == 0] == 0).all()
    assert (result[COLORS == 255] == 255).all()


def test_adds_up() -> None:
    tones = ramp(65536, 1, depth=16)
    twice = run(run(tones, gamma=-30), gamma=-40)
    assert np.abs(twice.astype(int) - run(tones, gamma=-70)).max() <= 2


def test_plus_brightens_the_midtones() -> None:
    assert run(np.full((1, 1, 3), 128, np.uint8), gamma=50).min() > 140
