"""``contrast``: the slope about mid gray."""

from __future__ import annotations

import numpy as np
import pytest

from tests.adjust.css import css
from tests.adjust.exact import COLORS, run, signed
from tests.support.photos import deep


def test_0_is_neutral() -> None:
    assert (run(COLORS, contrast=0) == COLORS).all()


def test_minus_100_is_flat_mid_gray() -> None:
    assert (run(COLORS, contrast=-100) == 128).all()
    assert (run(deep(COLORS), contrast=-100) == 32768).all()


@pytest.mark.parametrize("value", [-80, -25, 40, 100])
def test_equals_css(value: int) -> None:
    theirs = css(COLORS, f"contrast({1 + value / 100})")
    assert np.abs(signed(run(COLORS, contrast=value)) - theirs).max() <= 1
