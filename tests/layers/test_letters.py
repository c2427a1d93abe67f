"""Letters that are drawn larger, and reduced to their size."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.formats.vips import to_array
from imgsvc_core.pixels.layers.letters import Letters
from imgsvc_core.plan.geometry import Box
from imgsvc_core.spec import Color

WHITE = Color(255, 255, 255)


@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(-9, 9), st.integers(-9, 9), st.integers(2, 6),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_pixels_are_means_of_the_squares_of_larger_letters(
    columns: int, rows: int, left: int, top: int, zoom: int, seed: int
) -> None:
    larger = np.random.default_rng(seed).integers(0, 256, (rows, columns), np.uint8)
    image = pyvips.Image.new_from_array(larger)
    letters = Letters(image, left, top, zoom, 1)
    width, height = letters.size
    drawn = letters.placed(Box(3, 2, width + 5, height + 4), 1, WHITE)
    expected = np.zeros((height + 4, width + 5))
    for row in range(rows):
        for column in range(columns):
            place = 2 + math.floor((top % zoom + row) / zoom), 3 + (left % zoom + column) // zoom
            expected[place] += larger[row, column] / zoom**2
    assert np.array_equal(to_array(drawn.image)[..., 0], drawn.array)
    assert np.abs(drawn.array - expected).max() <= 0.5 + 1e-9
    assert (drawn.margin, drawn.color) == (1, WHITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("imgsvc_core.pixels.layers.letters.numpy_pays", lambda pixels: False)
        alone = letters.placed(Box(3, 2, width + 5, height + 4), 1, WHITE)
    assert np.array_equal(to_array(alone.image)[..., 0], drawn.array)
