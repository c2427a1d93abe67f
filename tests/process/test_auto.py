"""The output format ``auto``: of what suits the picture, the best that there is room for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import imgsvc_core as imgsvc
from tests.support.photos import astronaut, cut_out

PHOTO = astronaut()[100:300, 100:340]


def _encoded(source: Any, format: str, **output: Any) -> imgsvc.Result:
    return imgsvc.process(source, {"output": {"format": format, **output}})


def _size(source: Any, format: str, **output: Any) -> int:
    return len(_encoded(source, format, **output).data or b"")


def test_without_a_bound_it_is_the_smaller_file() -> None:
    sizes = {format: _size(PHOTO, format) for format in ("webp", "jpg")}
    assert _encoded(PHOTO, "auto").output.format == min(sizes, key=sizes.__getitem__)


def test_what_cannot_fit_is_no_failure_while_another_format_fits() -> None:
    source = cut_out()
    room = _size(source, "webp") + 10
    assert room < _size(source, "png")
    result = _encoded(source, "auto", max_bytes=room)
    assert (result.output.format, result.output.quality) == ("webp", 80)
    assert len(result.data or b"") <= room


def test_it_is_an_error_where_nothing_fits() -> None:
    source = cut_out()
    smallest = _size(source, "webp", quality=1)
    with pytest.raises(imgsvc.BudgetUnreachable, match=f"the smallest it gets is {smallest} bytes"):
        _encoded(source, "auto", max_bytes=smallest - 1)


def test_of_two_that_fit_the_better_picture_is_taken() -> None:
    room = _size(PHOTO, "webp") * 2 // 3
    qualities = {
        format: _encoded(PHOTO, format, max_bytes=room).output.quality or 0 for format in ("webp", "jpg")
    }
    assert qualities["jpg"] < qualities["webp"] < 80
    result = _encoded(PHOTO, "auto", max_bytes=room)
    assert (result.output.format, result.output.quality) == ("webp", qualities["webp"])
    assert "gives up less" in str(result.plan)


def test_a_lossless_picture_that_fits_is_better_than_a_lossy_one() -> None:
    tile = np.random.default_rng(0).integers(0, 256, (16, 16, 4), np.uint8)
    pattern = np.tile(tile, (8, 8, 1))
    room = _size(pattern, "webp") - 1
    lowered = _encoded(pattern, "webp", max_bytes=room)
    assert (lowered.output.quality or 0) < 80
    assert _encoded(pattern, "auto", max_bytes=room).output.format == "png"


def test_a_side_that_one_format_cannot_hold_leaves_the_other() -> None:
    longest = np.zeros((1, 16_384, 3), np.uint8)
    with pytest.raises(imgsvc.OutputTooLarge):
        _encoded(longest, "webp")
    assert _encoded(longest, "auto").output.format == "jpg"


def test_lossless_asks_only_formats_that_are() -> None:
    result = _encoded(PHOTO, "auto", lossless=True)
    again = imgsvc.process(result.data, {"output": {"format": "png"}})
    assert again.data == _encoded(PHOTO, "png").data
