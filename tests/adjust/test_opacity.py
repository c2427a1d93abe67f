"""``opacity``: alpha of the whole picture; and that nothing else touches alpha."""

from __future__ import annotations

import numpy as np
import pytest

from imgsvc_core.pixels.pointwise import apply_blocks, multiply_alpha
from imgsvc_core.plan.color import steps
from imgsvc_core.plan.filter_works import Opacity
from imgsvc_core.plan.folding import fold
from imgsvc_core.spec import Adjust, Sepia
from tests.adjust.exact import COLORS, GRAYS
from tests.support.colors import color_steps
from tests.support.photos import Pixels, as_pixels, as_vips, cut_out, deep


def test_1_is_neutral() -> None:
    for pixels in (COLORS, cut_out()):
        assert as_pixels(multiply_alpha(as_vips(pixels), Opacity(1))).shape == pixels.shape


@pytest.mark.parametrize("opacity", [0, 0.25, 0.5, 0.99])
@pytest.mark.parametrize("kind", [lambda p: p, deep], ids=["8 bit", "16 bit"])
def test_scales_alpha_and_leaves_color(opacity: float, kind: type[Pixels]) -> None:
    pixels = kind(cut_out())
    result = as_pixels(multiply_alpha(as_vips(pixels), Opacity(opacity)))
    assert result.dtype == pixels.dtype
    assert (result[..., :3] == pixels[..., :3]).all()
    assert np.abs(result[..., 3] - pixels[..., 3] * opacity).max() <= 0.5


@pytest.mark.parametrize("pixels", [COLORS, GRAYS, deep(COLORS)], ids=["color", "gray", "16 bit"])
def test_adds_alpha_where_there_is_none(pixels: Pixels) -> None:
    image = multiply_alpha(as_vips(pixels), Opacity(0.4))
    assert image.hasalpha()
    result = as_pixels(image)
    color = result[..., :-1] if pixels.ndim == 3 else result[..., 0]
    assert (color == pixels).all()
    assert (result[..., -1] == round(0.4 * np.iinfo(pixels.dtype).max)).all()


@pytest.mark.parametrize("kind", [lambda p: p, deep], ids=["8 bit", "16 bit"])
def test_color_operations_leave_alpha(kind: type[Pixels]) -> None:
    pixels = kind(cut_out())
    asked = color_steps(Adjust(contrast=40, vibrance=50, invert=True))
    result = as_pixels(apply_blocks(as_vips(pixels), fold(asked)))
    assert (result[..., 3] == pixels[..., 3]).all()
    assert (result[..., :3] != pixels[..., :3]).any()


def test_gray_with_alpha_becomes_rgb_with_alpha_when_color_comes_in() -> None:
    pixels = np.dstack([GRAYS, GRAYS[::-1]])
    sepia = steps.filtering(Sepia(value=80))
    assert sepia is not None
    result = apply_blocks(as_vips(pixels), fold([sepia], gray=True))
    assert result.interpretation == "srgb"
    assert result.bands == 4
    assert (as_pixels(result)[..., 3] == pixels[..., 1]).all()
