"""The shared pictures are what their docstrings say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import photos


@pytest.mark.parametrize("name", photos.COLOR)
def test_color_photographs(name: str) -> None:
    photo = photos.photo(name)
    assert photo.dtype == np.uint8
    assert photo.ndim == 3
    assert photo.shape[2] == 3
    assert photo.std() > 20


@pytest.mark.parametrize("name", photos.GRAY)
def test_gray_photographs(name: str) -> None:
    assert photos.photo(name).shape == (512, 512)


def test_a_photograph_may_be_changed_by_who_asked_for_it() -> None:
    photos.cat()[:] = 0
    assert photos.cat().mean() > 50


@pytest.mark.parametrize("size", [(1, 1), (300, 200), (1121, 901), (2725, 2225)])
def test_mosaics_of_any_size(size: tuple[int, int]) -> None:
    width, height = size
    assert photos.mosaic(width, height).shape == (height, width, 3)


def test_frames_move_and_come_full_circle() -> None:
    frames = photos.moving_frames(8, 120, 90)
    assert {frame.shape for frame in frames} == {(90, 120, 3)}
    assert all((frames[0] != frame).any() for frame in frames[1:])


@pytest.mark.parametrize(
    ("pixels", "bands", "interpretation"),
    [
        (photos.ramp(32, 4), 1, "b-w"),
        (photos.ramp(32, 4, depth=16), 1, "grey16"),
        (photos.color_wheel(30, 20), 3, "srgb"),
        (photos.deep(photos.color_wheel(30, 20)), 3, "rgb16"),
        (photos.cut_out("cat"), 4, "srgb"),
    ],
)
def test_pixels_to_vips_and_back(pixels: photos.Pixels, bands: int, interpretation: str) -> None:
    image = photos.as_vips(pixels)
    assert (image.bands, image.interpretation) == (bands, interpretation)
    np.testing.assert_array_equal(photos.as_pixels(image), pixels)


@pytest.mark.parametrize("depth", [8, 16])
def test_ramp_runs_from_black_to_white(depth: int) -> None:
    ramp = photos.ramp(100, 3, depth=depth).astype(int)
    assert ramp[:, 0].max() == 0
    assert ramp[:, -1].min() == 2**depth - 1
    assert (np.diff(ramp, axis=1) > 0).all()
