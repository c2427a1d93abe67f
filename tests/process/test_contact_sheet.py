"""Many pictures on one sheet, each where it belongs."""

from __future__ import annotations

import io
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
    assert imgsvc.contact_sheet([coffee()], io.BytesIO()).output.format == "jpg"
    poor = imgsvc.contact_sheet([coffee()], output=imgsvc.Output(quality=5))
    assert poor.output.format == "jpg"
    assert 2 * poor.output.bytes < imgsvc.contact_sheet([coffee()]).output.bytes
    told = imgsvc.contact_sheet([coffee()], output=imgsvc.Output(facts=["gray"]))
    assert (told.output.format, told.facts) == ("jpg", {"gray": False})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sources": []}, "'sources' parameter must be at least one picture, got 0"),
        ({"columns": 0}, "'columns' parameter must be integer within 1 to 65535 range, got 0"),
        ({"columns": "2"}, "'columns' parameter must be integer .* got .2."),
        ({"gap": -1}, "'gap' parameter must be integer within 0 to 65535 range, got -1"),
        ({"gap": 1.5}, "'gap' parameter must be integer .* got 1.5"),
        ({"width": 0}, "'width' parameter must be integer"),
        ({"height": None}, "'height' parameter must be integer"),
        ({"background": "red"}, "'background' parameter must be"),
    ],
)
def test_what_makes_no_sheet_is_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises(imgsvc.SpecError, match=f"^Contact sheet {words}"):
        imgsvc.contact_sheet(**{"sources": [coffee()], **options})


def test_the_output_is_no_other_operation() -> None:
    other: Any = imgsvc.Resize(width=5)
    with pytest.raises(imgsvc.SpecError, match=r"^Output must be an object of parameters, got Resize"):
        imgsvc.contact_sheet([coffee()], output=other)


@pytest.mark.parametrize("source", ["a.jpg", b"abc", Path("a.jpg"), io.BytesIO(), plain(RED), 5])
def test_one_picture_is_no_list_of_pictures(source: Any) -> None:
    got = type(source).__name__
    with pytest.raises(TypeError, match=f"Sources must be an iterable of pictures, got {got}"):
        imgsvc.contact_sheet(source)


def test_the_picture_that_cannot_be_shown_is_named() -> None:
    with pytest.raises(imgsvc.UnsupportedFormat, match=r"^Picture 2 of the sheet: "):
        imgsvc.contact_sheet([coffee(), b"no picture"])


def test_a_sheet_that_is_too_large_takes_no_memory() -> None:
    """It would be more than a process can address."""
    with pytest.raises(imgsvc.OutputTooLarge):
        imgsvc.contact_sheet([coffee()], columns=65_535, width=65_535, gap=65_535)


def test_limits_hold_for_each_picture() -> None:
    small = imgsvc.Limits(source_pixels=100 * 100)
    sizes: dict[str, Any] = {"width": 40, "height": 30, "gap": 0}
    assert imgsvc.contact_sheet([plain(RED)] * 2, **sizes, limits=small).plan.size == (80, 30)
    with pytest.raises(imgsvc.ImageTooLarge, match=r"^Picture 2 of the sheet: "):
        imgsvc.contact_sheet([plain(RED), coffee()], **sizes, limits=small)
