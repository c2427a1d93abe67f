"""Colors of a picture, counted and numbered."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from imgsvc_core.formats import palette
from imgsvc_core.formats.png.deflating import best_way
from imgsvc_core.formats.vips import from_array
from tests.support.photos import Pixels, coffee


def _rgba(pixels: Pixels) -> Pixels:
    """Return a picture of any number of bands as RGBA."""
    bands = pixels.shape[2]
    colors = pixels[..., :3] if bands >= 3 else np.repeat(pixels[..., :1], 3, axis=2)
    alpha = pixels[..., -1:] if bands in (2, 4) else np.full_like(pixels[..., :1], 255)
    return np.concatenate([colors, alpha], axis=2)


@pytest.mark.parametrize("bands", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (7, 300), (400, 600), (900, 300)])
def test_numbers_give_back_every_pixel(size: tuple[int, int], bands: int) -> None:
    levels = np.random.default_rng(bands).integers(0, 4, (*size, bands), np.uint8) * 80
    levels[: size[0] // 2] = 80  # one long run, and many short ones
    found = palette.index_exactly(levels, 256)
    assert found is not None
    assert np.array_equal(found.colors[found.numbers], _rgba(levels))
    assert len(found.colors) == len(np.unique(_rgba(levels).view(np.uint32)))


@pytest.mark.parametrize("size", [(16, 16), (400, 600)])
def test_one_color_too_many_is_seen_anywhere(size: tuple[int, int]) -> None:
    count = size[0] * size[1]
    grays = (np.arange(count) % 200).astype(np.uint8).reshape(*size, 1)
    assert palette.index_exactly(grays, 200) is not None
    grays[-1, -2] = 201
    assert palette.index_exactly(grays, 200) is None


def _most_held(work: Callable[[], object]) -> int:
    """Return the most bytes that some work holds, once all is loaded."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_colors_of_a_part_alone_are_chosen_too() -> None:
    """Pixels are counted in parts: the lower ones here have no invisible color."""
    pixels = np.random.default_rng(3).integers(0, 256, (800, 512, 4), np.uint8)
    pixels[:, ::2, 3] = 255
    pixels[:400, 1::2, 3] = 0
    pixels[400:, 1::2, 3] = 128
    found = palette.index_nearly(from_array(pixels), 16)
    alpha = found.colors[found.numbers][..., 3]
    assert np.array_equal(alpha == 0, pixels[..., 3] == 0)
    assert (alpha[:, ::2] == 255).all()


def test_few_pixels_tell_that_a_photograph_has_more_colors() -> None:
    photo = coffee()
    assert palette.index_exactly(photo, 256) is None
    assert _most_held(lambda: palette.index_exactly(photo, 256)) < 40_000


def test_filters_are_tried_in_little_memory() -> None:
    """New pages of memory take longer than to compute what is written to them."""
    pixels = np.ascontiguousarray(coffee()[:64, :64])
    assert _most_held(lambda: best_way(pixels, 6)) < 30 * pixels.size


@pytest.mark.parametrize("bands", [1, 2, 3, 4])
def test_numbers_and_runs_of_colors_take_little_memory(bands: int) -> None:
    flat = np.zeros((800, 1000, bands), np.uint8)
    flat[:, ::50] = 200
    assert palette.has_at_most(2, flat)
    assert not palette.has_at_most(1, flat)
    noisy = np.random.default_rng(7).integers(0, 3, flat.shape, np.uint8)
    for pixels in (flat, noisy):
        found = palette.index_exactly(pixels, 256)
        assert found is not None
        assert np.array_equal(found.colors[found.numbers], _rgba(pixels))
        assert _most_held(lambda some=pixels: palette.index_exactly(some, 256)) < 8_000_000
