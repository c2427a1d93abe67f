"""The measure itself: equal pictures are at 0, and what looks worse is further away."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import pyvips

from tests.support import photos
from tests.support.perceptual import distance


def jpeg(pixels: photos.Pixels, quality: int) -> photos.Pixels:
    encoded = photos.as_vips(pixels).jpegsave_buffer(Q=quality)
    return photos.as_pixels(pyvips.Image.jpegload_buffer(encoded))


@pytest.mark.parametrize("name", photos.COLOR[:4])
def test_lower_quality_is_further_away(name: str) -> None:
    photo = photos.photo(name)
    distances = [distance(photo, jpeg(photo, quality)) for quality in (95, 90, 80, 60, 30, 10)]
    assert all(near < far for near, far in itertools.pairwise(distances))
    assert distances[0] < 0.004
    assert distances[-1] > 0.06


@pytest.mark.parametrize(
    "same",
    [
        lambda gray: gray.copy(),
        lambda gray: np.dstack([gray] * 3),
        photos.deep,
        photos.as_vips,
        lambda gray: np.dstack([gray, np.full_like(gray, 255)]),
    ],
    ids=["copy", "as RGB", "as 16 bit", "as vips image", "with opaque alpha"],
)
def test_the_way_of_storing_does_not_matter(same: object) -> None:
    gray = photos.camera()
    assert callable(same)
    assert distance(gray, same(gray)) == 0


def test_colors_under_transparency_do_not_matter_but_alpha_does() -> None:
    picture = photos.cut_out()
    recolored = picture.copy()
    recolored[picture[..., 3] == 0, :3] = (0, 200, 0)
    fainter = picture.copy()
    fainter[..., 3] //= 2
    assert distance(picture, recolored) == 0
    assert distance(picture, fainter) > 0.1


def test_symmetric() -> None:
    photo = photos.cat()
    worse = jpeg(photo, 30)
    assert distance(photo, worse) == pytest.approx(distance(worse, photo), rel=1e-4)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (7, 5), (300, 3)])
def test_small_pictures(size: tuple[int, int]) -> None:
    black = np.zeros(size, np.uint8)
    assert distance(black, black) == 0
    assert distance(black, black + 255) > 1


def test_a_missing_detail_shows() -> None:
    photo = photos.astronaut()
    covered = photo.copy()
    covered[20:80, 20:160] = 128
    assert distance(photo, covered) > 0.02


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="10 x 8 and 8 x 10"):
        distance(np.zeros((8, 10), np.uint8), np.zeros((10, 8), np.uint8))
