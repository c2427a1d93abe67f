"""The best quality that fits into a number of bytes."""

from __future__ import annotations

import io

import attrs
import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.errors import BudgetUnreachable
from imgsvc_core.formats.saving import best_fitting, save
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from tests.support import photos
from tests.support.handmade import vips

_WITH_QUALITY = [name for name in OUTPUT_NAMES if FORMATS[name].quality is not None]


def _picture() -> pyvips.Image:
    return vips(photos.astronaut()[100:228, 150:278])


@pytest.mark.parametrize("format", _WITH_QUALITY)
def test_the_best_quality_that_fits(format: str) -> None:
    largest = save(_picture(), SaveSettings(format=format, quality=90)).info.bytes
    budget = largest // 2
    result = save(_picture(), SaveSettings(format=format, quality=90, max_bytes=budget))
    assert result.data is not None
    assert len(result.data) <= budget
    assert result.info.quality is not None
    assert result.info.quality < 90
    better = save(_picture(), SaveSettings(format=format, quality=result.info.quality + 1))
    assert better.info.bytes > budget


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_room_to_spare_changes_nothing(format: str) -> None:
    plain = save(_picture(), SaveSettings(format=format))
    assert save(_picture(), SaveSettings(format=format, max_bytes=10_000_000)) == plain


@pytest.mark.parametrize("format", OUTPUT_NAMES)
def test_too_little_room_is_told_with_numbers(format: str) -> None:
    with pytest.raises(BudgetUnreachable, match=r"into 30 bytes: the smallest it gets is \d+ bytes"):
        save(_picture(), SaveSettings(format=format, max_bytes=30))


def test_lossless_has_no_quality_to_lower() -> None:
    plain = save(_picture(), SaveSettings(format="webp", lossless=True))
    with pytest.raises(BudgetUnreachable):
        save(_picture(), SaveSettings(format="webp", lossless=True, max_bytes=plain.info.bytes - 1))


def test_nothing_is_written_before_it_fits() -> None:
    target = io.BytesIO()
    result = save(_picture(), SaveSettings(format="jpg", max_bytes=3000), target)
    assert 0 < result.info.bytes == len(target.getvalue()) <= 3000
    empty = io.BytesIO()
    with pytest.raises(BudgetUnreachable):
        save(_picture(), SaveSettings(format="jpg", max_bytes=30), empty)
    assert empty.getvalue() == b""


def test_animations_fit_too() -> None:
    frames = photos.moving_frames(4, 96, 64)
    strip = vips(np.concatenate(frames))
    strip.set_type(pyvips.GValue.gint_type, "page-height", 64)
    plain = save(strip, SaveSettings(format="webp")).info.bytes
    result = save(strip, SaveSettings(format="webp", max_bytes=plain * 2 // 3))
    assert result.info.bytes <= plain * 2 // 3


@given(st.integers(1, 100), st.integers(0, 2000))
def test_search_is_exact_for_sizes_that_grow(highest: int, budget: int) -> None:
    tried = []

    def encode(quality: int) -> bytes:
        tried.append(quality)
        return bytes(10 + quality * 7)

    fitting = [quality for quality in range(1, highest + 1) if 10 + quality * 7 <= budget]
    if fitting:
        data, quality = best_fitting(encode, highest, budget)
        assert quality == max(fitting)
        assert len(data) == 10 + quality * 7
    else:
        with pytest.raises(BudgetUnreachable, match="17 bytes"):
            best_fitting(encode, highest, budget)
    assert len(tried) <= 9


def test_a_ladder_of_qualities_ends_with_one_that_is_taken_in_any_case() -> None:
    sizes = {
        quality: save(_picture(), SaveSettings(format="jpg", quality=quality)).info.bytes
        for quality in (80, 60, 30)
    }
    ladder = SaveSettings(format="jpg", quality=80, ladder=(80, 60, 30, 80), max_bytes=sizes[60])
    assert (save(_picture(), ladder).info.quality, save(_picture(), ladder).info.bytes) == (60, sizes[60])
    assert save(_picture(), attrs.evolve(ladder, max_bytes=sizes[60] - 1)).info.quality == 30
    assert save(_picture(), attrs.evolve(ladder, max_bytes=30)).info.bytes == sizes[80]
