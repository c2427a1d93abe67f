"""The best quality that fits into a number of bytes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping

import attrs
import numpy as np
import pytest
import pyvips
from benchmarks.kinds import poster
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from imgsvc_core.errors import BudgetUnreachable
from imgsvc_core.formats.saving import best_fitting, save
from imgsvc_core.formats.settings import SaveSettings
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from tests.support import photos
from tests.support.handmade import vips

_SMALL = {
    "tiny": lambda: photos.astronaut()[100:132, 150:182],
    "flat": lambda: np.ascontiguousarray(poster()[:96, :128]),
}
_SHORT = {"photograph": 0.02, "tiny": 0.07, "flat": 1}
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


def test_few_pixels_that_are_worked_on_in_an_array_fit_too() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    source = vips(pixels).pngsave_buffer()
    assert len(imgsvc.process(source, {"output": {"format": "webp", "max_bytes": 3000}}).data) <= 3000
    with pytest.raises(BudgetUnreachable):
        _ = imgsvc.process(source, {"output": {"format": "png", "max_bytes": 3000}}).data


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
    assert len(tried) <= 8


@given(
    st.lists(st.integers(-12, 30), min_size=100, max_size=100), st.integers(1, 100), st.integers(600, 2500)
)
def test_sizes_that_also_fall(steps: list[int], highest: int, budget: int) -> None:
    sizes = [800 + sum(steps[: quality + 1]) for quality in range(highest)]
    tried = []

    def encode(quality: int) -> bytes:
        tried.append(quality)
        return bytes(max(1, sizes[quality - 1]))

    if sizes[0] > budget:  # the search ends at quality 1, if it finds nothing on its way
        with contextlib.suppress(BudgetUnreachable):
            best_fitting(encode, highest, budget)
    else:
        data, quality = best_fitting(encode, highest, budget)
        assert len(data) == sizes[quality - 1] <= budget
        assert quality == max(one for one in tried if sizes[one - 1] <= budget)
    assert len(tried) == len(set(tried)) <= 8


def test_a_higher_quality_that_is_smaller_again() -> None:
    sizes = {quality: 1000 + 10 * quality for quality in range(1, 81)} | {44: 1395, 43: 1450}
    assert best_fitting(lambda quality: bytes(sizes[quality]), 80, 1420) == (bytes(1395), 44)


@pytest.mark.parametrize("format", ["jpg", "webp"])
@pytest.mark.parametrize("picture", ["photograph", "tiny", "flat"])
def test_beside_all_qualities_of_pictures_whose_size_does_not_grow(format: str, picture: str) -> None:
    """The best quality for nearly all budgets, but for flat pictures of 110 to 164 bytes."""
    image = _picture() if picture == "photograph" else vips(_SMALL[picture]())
    files = dict.fromkeys(range(1, 81), b"")
    for quality in files:
        files[quality] = save(image, SaveSettings(format=format, quality=quality)).data or b""
    sizes = {quality: len(data) for quality, data in files.items()}
    assert any(sizes[quality + 1] < sizes[quality] for quality in range(1, 80))
    budgets = range(min(sizes.values()), sizes[80], max(1, sizes[80] // 400))
    short = 0
    for budget in budgets:
        tried: list[int] = []

        def encode(quality: int, tried: list[int] = tried) -> bytes:
            tried.append(quality)
            return files[quality]

        data, found = best_fitting(encode, 80, budget)
        assert len(data) <= budget
        assert len(tried) <= 8
        assert found >= _by_bisection(sizes, budget)
        short += found < max(quality for quality in sizes if sizes[quality] <= budget)
    assert short <= _SHORT[picture] * len(budgets)


def _by_bisection(sizes: Mapping[int, int], budget: int) -> int:
    fits, too_large = 0, 80
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        fits, too_large = (middle, too_large) if sizes[middle] <= budget else (fits, middle)
    return fits


def test_a_ladder_of_qualities_ends_with_one_that_is_taken_in_any_case() -> None:
    sizes = {
        quality: save(_picture(), SaveSettings(format="jpg", quality=quality)).info.bytes
        for quality in (80, 60, 30)
    }
    ladder = SaveSettings(format="jpg", quality=80, ladder=(80, 60, 30, 80), max_bytes=sizes[60])
    assert (save(_picture(), ladder).info.quality, save(_picture(), ladder).info.bytes) == (60, sizes[60])
    assert save(_picture(), attrs.evolve(ladder, max_bytes=sizes[60] - 1)).info.quality == 30
    assert save(_picture(), attrs.evolve(ladder, max_bytes=30)).info.bytes == sizes[80]
