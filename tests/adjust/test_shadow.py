"""``shadow``: lifted dark tones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adjust.exact import COLORS, GRAYS, levels_off, run, unit
from tests.support.photos import deep, ramp


def test_0_is_neutral() -> None:
    assert (run(COLORS, shadow=0) == COLORS).all()


@pytest.mark.parametrize("value", [1, 50, 100])
def test_ends_stay_and_tones_keep_their_order(value: int) -> None:
    tones = run(ramp(65536, 1, depth=16), shadow=value)[0].astype(int)
    assert (tones[0], tones[-1]) == (0, 65535)
    assert (np.diff(tones) >= 0).all()


def test_lifts_by_the_formula() -> None:
    x = unit(GRAYS)
    assert levels_off(run(GRAYS, shadow=80), x + 1.5 * 0.8 * x * (1 - x) ** 3) <= 0.51


def test_lifts_dark_tones_most() -> None:
    lift = run(deep(GRAYS), shadow=50).astype(int) - deep(GRAYS)
    assert 50 < np.unravel_index(lift.argmax(), (256,))[0] < 80
