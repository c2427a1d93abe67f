"""What a result lacks of its source because of its format is told in its notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from tests.support import encoded
from tests.support.handmade import ApngFrame, apng_by_hand, pillow
from tests.support.photos import as_vips, coffee, cut_out


def animation(format: str, delays: list[int]) -> bytes:
    """Frames of one pixel that differ."""
    shades = [np.full((1, 1, 3), 3 * number, np.uint8) for number in range(len(delays))]
    apng = apng_by_hand(
        [ApngFrame(pixels=shade, delay=(delay, 1000)) for shade, delay in zip(shades, delays, strict=True)]
    )
    if format == "apng":
        return apng
    data = imgsvc.process(apng, {"output": {"format": format, "lossless": format == "webp"}}).data
    assert data is not None
    return data


@given(
    st.sampled_from(["apng", "webp", "gif"]),
    st.sampled_from(["apng", "webp", "gif"]),
    st.lists(st.one_of(st.integers(0, 30), st.integers(0, 3000)), min_size=2, max_size=12),
)
def test_an_animation_lasts_as_long_in_every_format(before: str, after: str, delays: list[int]) -> None:
    source = animation(before, delays)
    result = imgsvc.process(source, {"output": {"format": after}})
    assert abs(sum(result.output.delays) - sum(result.input.delays)) <= 25
    hurried = sum(delay <= 10 for delay in result.input.delays)
    assert sum(delay <= 10 for delay in result.output.delays) <= hurried
    missing = result.input.frames - result.output.frames
    assert (missing > 0) == any("left out" in note for note in result.notes)
    if after != "gif":
        assert result.output.delays == result.input.delays


def test_frames_that_gif_leaves_out() -> None:
    result = imgsvc.process(animation("webp", [16] * 12), {"output": {"format": "gif", "max_bytes": 9000}})
    assert result.output.delays == (20,) * 10
    assert result.notes == ("GIF has no frames of less than 20 ms: 2 of 12 are left out.",)
    assert result.to_dict()["notes"] == list(result.notes)
    assert result.to_numpy()[-1, 0, 0].tolist() == [33, 33, 33]  # the last frame is not among them


def test_frames_that_a_still_format_leaves_out() -> None:
    source = encoded.gif_animated()
    result = imgsvc.process(source.data, {"output": {"format": "png"}})
    assert result.notes == (f"Only the first of {result.input.frames} frames is kept.",)


def test_transparency_that_a_format_lacks() -> None:
    source = as_vips(cut_out()).pngsave_buffer()
    request: dict[str, Any] = {"output": {"format": "jpg", "background": "336699"}}
    expected = "JPEG has no transparency: what was transparent lies on 336699."
    assert imgsvc.process(source, request).notes == (expected,)


@pytest.mark.parametrize("format", ["jpg", "png", "webp", "avif"])
def test_nothing_is_told_of_a_picture_that_fits(format: str) -> None:
    assert imgsvc.process(pillow(coffee()[:40, :60], "PNG"), {"output": {"format": format}}).notes == ()
