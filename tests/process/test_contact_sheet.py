"""Many pictures on one sheet, each where it belongs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import imgsvc_core as imgsvc
from tests.support.photos import coffee, cut_out, deep

RED, GREEN, BLUE = ((255, 0, 0), (0, 128, 0), (0, 0, 255))


def plain(color: tuple[int, int, int], width: int = 40, height: int = 30) -> Any:
    return np.full((height, width, 3), color, np.uint8)


def test_pictures_stand_in_rows_in_the_order_of_reading() -> None:
    pictures = [plain(RED), plain(GREEN), plain(BLUE)]
    sheet = imgsvc.contact_sheet(pictures, width=40, height=30, gap=4, background="eee").to_numpy()
    expected = np.full((2 * 34 + 4, 2 * 44 + 4, 3), 0xEE, np.uint8)
    expected[4:34, 4:44] = RED
    expected[4:34, 48:88] = GREEN
    expected[38:68, 4:44] = BLUE
    assert np.array_equal(sheet, expected)


def test_pictures_are_whole_and_in_the_middle() -> None:
    sheet = imgsvc.contact_sheet([plain(RED, 200, 100)], width=100, height=100, gap=0).to_numpy()
    inside = (sheet == RED).all(axis=2)
    assert (inside[25:75].all(), inside[:25].any(), inside[75:].any()) == (True, False, False)
    small = imgsvc.contact_sheet([plain(RED, 10, 10)], width=100, height=100, gap=0).to_numpy()
    assert (small == RED).all(axis=2).sum() == 100


def test_gray_deep_and_transparent_pictures_are_rgb_on_the_background(tmp_path: Path) -> None:
    clear = np.dstack([coffee(), np.zeros(coffee().shape[:2], np.uint8)])
    pictures = [coffee()[..., 0], deep(coffee()), clear, cut_out("coffee")]
    result = imgsvc.contact_sheet(
        pictures, tmp_path / "s.png", columns=4, width=60, height=40, gap=0, background="0f0"
    )
    assert (result.output.format, result.output.width, result.output.height) == ("png", 240, 40)
    sheet = imgsvc.process(tmp_path / "s.png").to_numpy()
    assert np.array_equal(sheet[:, 0:60, 0], sheet[:, 0:60, 1])
    assert (sheet[:, 120:180] == (0, 255, 0)).all()


def test_a_sheet_is_jpeg_unless_told_otherwise() -> None:
    assert imgsvc.contact_sheet([coffee()]).output.format == "jpg"
    assert imgsvc.contact_sheet([coffee()], output=imgsvc.Output(format="webp")).output.format == "webp"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sources": []}, "'sources' parameter must be at least one picture, got 0"),
        ({"columns": 0}, "'columns' parameter must be a positive integer, got 0"),
        ({"gap": -1}, "'gap' parameter must be an integer of at least 0, got -1"),
        ({"width": 0}, "'width' parameter must be"),
        ({"background": "red"}, "'background' parameter must be"),
    ],
)
def test_what_makes_no_sheet_is_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises(imgsvc.SpecError, match=words):
        imgsvc.contact_sheet(**{"sources": [coffee()], **options})


def test_one_path_is_no_list_of_pictures() -> None:
    with pytest.raises(TypeError, match="must be an iterable of pictures, got str"):
        imgsvc.contact_sheet("a.jpg")


def test_the_picture_that_cannot_be_shown_is_named() -> None:
    with pytest.raises(imgsvc.UnsupportedFormat, match=r"^Picture 2 of the sheet: "):
        imgsvc.contact_sheet([coffee(), b"no picture"])
    with pytest.raises(imgsvc.OutputTooLarge):
        imgsvc.contact_sheet([coffee()] * 2, width=16_000)
