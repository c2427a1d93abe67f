"""``exposure``: a gain on linear light."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import pyvips

from tests.adjust.exact import COLORS, decode, encode, levels_off, run, signed, unit
from tests.support import requires
from tests.support.photos import as_pixels, as_vips, deep


def test_0_is_neutral() -> None:
    assert (run(COLORS, exposure=0) == COLORS).all()


@pytest.mark.parametrize(("value", "gain"), [(50, 2), (100, 4), (-50, 0.5), (-100, 0.25)])
def test_50_is_one_stop(value: int, gain: float) -> None:
    expected = np.clip(encode(decode(unit(COLORS)) * gain), 0, 1)
    assert levels_off(run(COLORS, exposure=value), expected) <= 0.51


def test_is_additive_until_clipping() -> None:
    pixels = deep(COLORS)
    twice = run(run(pixels, exposure=-30), exposure=-20)
    assert np.abs(signed(twice) - run(pixels, exposure=-50)).max() <= 3


@pytest.mark.parametrize(("value", "gain"), [(30, 2**0.6), (-70, 2**-1.4)])
def test_equals_a_gain_on_linear_light_in_imagemagick(value: int, gain: float, tmp_path: Path) -> None:
    magick = requires.program("magick", "convert-im6.q16", "convert")
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    as_vips(deep(COLORS)).pngsave(str(source))
    operations = ["-colorspace", "RGB", "-evaluate", "Multiply", str(gain), "-colorspace", "sRGB"]
    subprocess.run([magick, str(source), *operations, "-depth", "16", str(target)], check=True)
    theirs = as_pixels(pyvips.Image.new_from_file(str(target)))
    assert np.abs(signed(run(deep(COLORS), exposure=value)) - theirs).max() <= 64
