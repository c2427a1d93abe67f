from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.pixels.spatial.pixellate import pixellate, pixellate_cell
from tests.support.golden import GoldenCheck
from tests.support.photos import as_vips, astronaut, coffee, cut_out
from tests.support.spatial import (
    KINDS,
    assert_deep,
    assert_flat_is_exact,
    assert_keeps_metadata,
    assert_no_halo,
    assert_same_kind,
    assert_streams,
    every_kind,
    pictures,
)


def cells(pixels: np.ndarray, axis: int) -> list[slice]:
    """The runs of equal rows or columns."""
    rows = np.moveaxis(pixels, axis, 0).reshape(pixels.shape[axis], -1)
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)])
    return [slice(a, b) for a, b in zip(starts, np.r_[starts[1:], len(rows)], strict=True)]


@given(st.integers(8, 60), st.integers(8, 60), st.floats(1.5, 30), st.sampled_from([np.uint8, np.uint16]))
def test_every_cell_is_its_mean(width: int, height: int, cell: float, dtype: type) -> None:
    top = np.iinfo(dtype).max
    pixels = np.random.default_rng(width).integers(0, top, (height, width, 3), dtype, endpoint=True)
    result = pixellate(as_vips(pixels), cell).numpy()
    across, down = cells(result, 1), cells(result, 0)
    assert (len(across), len(down)) == (max(1, round(width / cell)), max(1, round(height / cell)))
    for sides in (across, down):
        lengths = [side.stop - side.start for side in sides]
        assert max(lengths) - min(lengths) <= 1
    for row in down:
        for column in across:
            assert (result[row, column] == result[row.start, column.start]).all()
            mean = pixels[row, column].astype(float).mean(axis=(0, 1))
            assert np.abs(result[row.start, column.start] - mean).max() <= 0.5 + 1e-6


def test_the_mean_is_kept() -> None:
    for cell in (3.3, 17, 60):
        assert pixellate(as_vips(coffee()), cell).numpy().mean() == pytest.approx(coffee().mean(), abs=0.1)


def test_again_changes_nothing() -> None:
    once = pixellate(as_vips(coffee()), 21.7)
    np.testing.assert_array_equal(pixellate(once, 21.7).numpy(), once.numpy())


@pytest.mark.parametrize("cell", [2.0, 7.7, 1000.0])
def test_a_flat_field_is_exact(cell: float) -> None:
    assert_flat_is_exact(lambda image: pixellate(image, cell))


def test_neutral_is_the_same_image() -> None:
    image = as_vips(astronaut())
    assert pixellate(image, pixellate_cell(0, 512)) is image
    assert pixellate(image, 1.0) is image


def test_alpha_is_averaged_and_weighs_the_colors() -> None:
    pixels = np.zeros((4, 4, 4), np.uint8)
    pixels[:2] = (200, 100, 50, 255)
    result = pixellate(as_vips(pixels), 4).numpy()
    assert (result == (200, 100, 50, 128)).all()
    assert_no_halo(lambda image: pixellate(image, 20))
    alone = pixellate(as_vips(np.ascontiguousarray(cut_out()[:, :, 3])), 20).numpy()
    np.testing.assert_array_equal(
        pixellate(as_vips(cut_out()), 20).numpy()[:, :, 3:].squeeze(), alone.squeeze()
    )


@every_kind
def test_keeps_the_kind(kind: str) -> None:
    image = as_vips(KINDS[kind]())
    assert_same_kind(pixellate(image, 17.3), image)


@given(pictures(), st.floats(0, 40))
def test_any_size_and_value(pixels: np.ndarray, cell: float) -> None:
    image = as_vips(pixels)
    assert_same_kind(pixellate(image, cell), image)


def test_metadata_frames_and_streams() -> None:
    assert_keeps_metadata(lambda image: pixellate(image, 20))
    assert_streams(lambda image: pixellate(image, 20))


def test_deep_pictures_are_computed_deep() -> None:
    assert_deep(lambda image: pixellate(image, 10))


def test_golden(check_golden: GoldenCheck) -> None:
    check_golden("pixellate", pixellate(as_vips(astronaut()), pixellate_cell(30, 512)))
