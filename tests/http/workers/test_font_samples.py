"""Samples of fonts, of which narrow lists show the left part."""

from __future__ import annotations

import pytest

import imgsvc_core as imgsvc
from imgsvc_core import fonts
from imgsvc_http.workers.font_samples import FontSample

SHOWN = 180
"""Pixels of a sample that the playground shows beside its sliders."""


@pytest.mark.parametrize("family", ["Inter", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Armenian"])
def test_samples_begin_at_the_left_also_in_scripts_from_right_to_left(family: str) -> None:
    assert fonts.catalog().ranges(family)
    drawn = FontSample(family=family, limits=imgsvc.Limits()).run(b"", 1)
    pixels = imgsvc.process(drawn.data).to_numpy()
    assert (pixels[:, :SHOWN] < 100).any()
