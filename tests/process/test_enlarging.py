"""Enlarged pictures stay where they are, up to their edges."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

import imgsvc_core as imgsvc
from tests.support.photos import coffee


def enlarged(pixels: np.ndarray, width: int, height: int, **request: object) -> np.ndarray:
    spec = {"resize": {"width": width, "height": height, "mode": "stretch"}, "output": {"format": "png"}}
    data = imgsvc.process(pixels, {**spec, **request}).data
    assert data is not None
    return np.asarray(Image.open(io.BytesIO(data)))


def center_of_light(pixels: np.ndarray) -> np.ndarray:
    light = pixels.astype(float)
    down, across = np.indices(light.shape) + 0.5
    return np.array([(light * across).sum(), (light * down).sum()]) / light.sum()


@given(width=st.integers(20, 300), height=st.integers(20, 300))
def test_a_spot_stays_in_the_middle(width: int, height: int) -> None:
    down, across = np.indices((60, 60)) - 29.5
    spot = (250 * np.exp(-(across**2 + down**2) / 50)).round().astype(np.uint8)
    found = center_of_light(enlarged(spot, width, height))
    assert found == pytest.approx([width / 2, height / 2], abs=0.05)


@pytest.mark.parametrize("size", [(200, 150), (161, 400), (640, 121), (100, 300)])
def test_as_another_library_does(size: tuple[int, int]) -> None:
    photo = coffee()[40:160, 40:200]
    across, down = (_kind(*sides) for sides in zip(size, (160, 120), strict=True))
    wide = Image.fromarray(photo).resize((size[0], 120), across)
    expected = np.asarray(wide.resize(size, down)).astype(float)
    difference = np.abs(enlarged(photo, *size) - expected)
    assert difference.mean() < 0.6
    assert difference[[0, -1]].mean() < 1.5
    assert difference[:, [0, -1]].mean() < 1.5


def _kind(new: int, old: int) -> Image.Resampling:
    return Image.Resampling.BICUBIC if new >= old else Image.Resampling.LANCZOS


@pytest.mark.parametrize("orientation", range(1, 9))
def test_what_is_turned_by_its_orientation_is_no_exception(orientation: int) -> None:
    photo = Image.fromarray(coffee()[40:160, 40:200])
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    photo.save(file, "PNG", exif=exif)
    spec = {"scale": {"size": 2.5}, "output": {"format": "png"}}
    found = imgsvc.process(file.getvalue(), spec).data
    file.seek(0)
    turned = np.asarray(ImageOps.exif_transpose(Image.open(file)))
    assert found is not None
    expected = imgsvc.process(turned, spec).data
    assert expected is not None
    difference = np.abs(
        np.asarray(Image.open(io.BytesIO(found))).astype(int) - np.asarray(Image.open(io.BytesIO(expected)))
    )
    assert difference.max() <= 2  # rows and columns are interpolated one after the other, and rounded


@pytest.mark.parametrize("format", ["png", "gif", "webp"])
def test_one_frame_of_an_animation_is_enlarged_as_a_still(format: Literal["png", "gif", "webp"]) -> None:
    first, second = (Image.fromarray(coffee()[top : top + 60, :80]) for top in (0, 60))
    animation = io.BytesIO()
    first.save(animation, "WEBP", save_all=True, append_images=[second], duration=50, lossless=True)
    spec = imgsvc.Spec(resize=imgsvc.Resize(width=160), output=imgsvc.Output(format=format, frame=1))
    found = imgsvc.process(animation.getvalue(), spec)
    assert (found.output.frames, found.output.height) == (1, 120)
    expected = imgsvc.process(second, imgsvc.Spec(resize=imgsvc.Resize(width=160)))
    np.testing.assert_array_equal(found.to_numpy()[..., :3], expected.to_numpy())
