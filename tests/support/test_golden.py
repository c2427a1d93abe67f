"""Golden pictures are written, compared and shown."""

from __future__ import annotations

from pathlib import Path

import pytest
import pyvips

from tests.support import photos
from tests.support.golden import GoldenCheck


@pytest.mark.parametrize(
    "picture", [photos.cat(), photos.cut_out("cat"), photos.camera(), photos.deep(photos.cat())]
)
def test_what_was_written_is_accepted_and_a_change_is_not(tmp_path: Path, picture: photos.Pixels) -> None:
    GoldenCheck(write=True, folder=tmp_path)("folder/cat", picture)
    check = GoldenCheck(folder=tmp_path)
    check("folder/cat", picture, tolerance=0)
    changed = picture // 2
    with pytest.raises(pytest.fail.Exception, match="perceptual distance"):
        check("folder/cat", changed, tolerance=0.05)


def test_a_missing_golden_fails(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="--write-goldens"):
        GoldenCheck(folder=tmp_path)("nothing", photos.cat())


def test_another_size_fails(tmp_path: Path) -> None:
    GoldenCheck(write=True, folder=tmp_path)("cat", photos.cat())
    with pytest.raises(pytest.fail.Exception, match="expected 451 x 300, got 450 x 300"):
        GoldenCheck(folder=tmp_path)("cat", photos.cat()[:, 1:])


@pytest.mark.parametrize("picture", [photos.cut_out("cat"), photos.camera()])
def test_differences_are_shown_side_by_side(tmp_path: Path, picture: photos.Pixels) -> None:
    shown = tmp_path / "shown"
    GoldenCheck(write=True, folder=tmp_path)("cat", picture)
    GoldenCheck(folder=tmp_path, differences=shown)("cat", picture)
    image = pyvips.Image.new_from_file(str(shown / "cat.png"))
    assert image.width == 3 * picture.shape[1] + 2 * 8
    difference = image.crop(image.width - picture.shape[1], 0, picture.shape[1], picture.shape[0])
    assert difference.min() == difference.max() == 128
