"""Frames that are reduced together are what each of them is alone."""

from __future__ import annotations

import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st

import imgsvc_core as imgsvc
from imgsvc_core.formats.vips import from_array, to_array, with_timing
from imgsvc_core.pixels import resampling, strips
from imgsvc_core.plan.geometry import Area, Box, Size
from tests.support.photos import Pixels


def noise(frames: int, height: int, width: int, bands: int, kind: str = "uint8") -> Pixels:
    random = np.random.default_rng(frames * height * width)
    return random.integers(0, np.iinfo(kind).max + 1, (frames, height, width, bands)).astype(kind)


def strip_of(frames: Pixels) -> pyvips.Image:
    return with_timing(
        from_array(frames.reshape(-1, *frames.shape[2:])), frames.shape[1], (40, 70) * (len(frames) // 2), 3
    )


def together(frames: Pixels, box: Box, want: Size) -> Pixels:
    reduced = strips.reduce(strip_of(frames), box, want)
    assert reduced.get_page_height() == want.height
    return to_array(reduced).reshape(len(frames), want.height, want.width, -1)


def alone(frame: Pixels, box: Box, want: Size) -> Pixels:
    part = from_array(frame).crop(*box)
    return to_array(resampling.resample(part, box.size, *want, Area(0, 0, *box.size)))


@given(st.data())
def test_each_frame_is_reduced_as_if_it_were_alone(data: st.DataObject) -> None:
    draw = data.draw
    width, height = draw(st.integers(1, 70)), draw(st.integers(1, 70))
    box_width, box_height = draw(st.integers(1, width)), draw(st.integers(1, height))
    box = Box(
        draw(st.integers(0, width - box_width)),
        draw(st.integers(0, height - box_height)),
        box_width,
        box_height,
    )
    want = Size(draw(st.integers(1, box_width)), draw(st.integers(1, box_height)))
    bands, kind = draw(st.integers(1, 4)), draw(st.sampled_from(["uint8", "uint16"]))
    frames = noise(draw(st.integers(2, 5)), height, width, bands, kind)
    assert strips.suits(strip_of(frames), box, want)
    found = together(frames, box, want)
    assert all((shown == alone(frame, box, want)).all() for shown, frame in zip(found, frames, strict=True))


@pytest.mark.parametrize("count", [64, 65, 100])
def test_many_frames_are_reduced_in_groups(count: int) -> None:
    frames, box, want = noise(count, 128, 128, 4), Box(0, 0, 128, 128), Size(20, 30)
    found = together(frames, box, want)
    for number in (0, 63, count - 1):
        assert (found[number] == alone(frames[number], box, want)).all()


@pytest.mark.parametrize("kind", ["uint8", "uint16"])
def test_frames_that_are_hardly_transparent_stay_so(kind: str) -> None:
    frames = np.full((2, 4, 4, 4), np.iinfo(kind).max - 1, kind)
    shown = imgsvc.process(strip_of(frames), {"resize": {"width": 2}, "output": {"format": "apng"}})
    assert (shown.to_numpy()[..., 3] == np.iinfo(kind).max - 1).all()


def test_frames_larger_than_a_group_are_left_to_others() -> None:
    large = strip_of(np.zeros((2, 2000, 1500, 4), np.uint8))
    assert not strips.suits(large, Box(0, 0, 1500, 2000), Size(10, 10))
    assert not strips.suits(strip_of(noise(2, 20, 20, 3)), Box(0, 0, 20, 20), Size(21, 10))


def test_a_strong_reduction_of_long_frames() -> None:
    frames, box, want = noise(3, 700, 300, 3), Box(10, 5, 280, 690), Size(20, 3)
    assert (together(frames, box, want)[1] == alone(frames[1], box, want)).all()


@pytest.mark.parametrize("extra", [{}, {"adjust": {"contrast": 30}}])
def test_an_animation_is_cropped_and_reduced_as_stills_are(extra: dict[str, object]) -> None:
    frames = noise(4, 48, 64, 3)
    request = {"resize": {"width": 20, "height": 20, "mode": "fill"}, **extra}
    lossless = {**request, "output": {"format": "webp", "lossless": True}}
    moving = imgsvc.process(strip_of(frames), lossless)
    assert (moving.output.delays, moving.output.plays) == ((40, 70, 40, 70), 3)
    found = pyvips.Image.webpload_buffer(moving.data, n=-1)
    assert found.get_page_height() == 20
    for number, frame in enumerate(frames):
        still = pyvips.Image.webpload_buffer(imgsvc.process(frame, lossless).data)
        assert (found.crop(0, 20 * number, 20, 20).numpy()[..., :3] == still.numpy()[..., :3]).all()
