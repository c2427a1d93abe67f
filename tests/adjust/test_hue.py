"""``hue``: a turn of all hues."""

from __future__ import annotations

import numpy as np
import pytest

from imgsvc_core.plan.color.matrices import hue
from tests.adjust.css import css
from tests.adjust.exact import COLORS, GRAYS, run, signed


def test_0_is_neutral() -> None:
    assert (run(COLORS, hue=0) == COLORS).all()


@pytest.mark.parametrize("value", [-179, -90, 45, 180])
def test_grays_stay(value: int) -> None:
    grays = np.dstack([GRAYS] * 3)
    assert (run(grays, hue=value) == grays).all()


def test_half_a_turn_is_the_same_in_both_directions() -> None:
    assert (run(COLORS, hue=180) == run(COLORS, hue=-180)).all()


def test_opposite_turns_cancel() -> None:
    turned_back = np.array(hue(70)) @ np.array(hue(-70))
    # The CSS coefficients have three digits.
    assert turned_back == pytest.approx(np.eye(3), abs=2e-3)


@pytest.mark.parametrize("value", [-120, -30, 60, 180])
def test_equals_css(value: int) -> None:
    theirs = css(COLORS, f"hue-rotate({value}deg)")
    assert np.abs(signed(run(COLORS, hue=value)) - theirs).max() <= 1
