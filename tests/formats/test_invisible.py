"""Colors that nobody sees: lossy files neither depend on them nor show them at edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import imgsvc_core as imgsvc
from tests.formats.test_animation import strip
from tests.support import photos
from tests.support.handmade import vips
from tests.support.photos import Pixels


def sticker(shift: int = 0) -> Pixels:
    """A red disk on nothing, with soft edges."""
    rows, columns = np.mgrid[:100, :140]
    alpha = (255 * (35.5 - np.hypot(rows - 50, columns - 50 - shift))).clip(0, 255)
    red = np.array([255, 60, 40]) * (alpha > 0)[..., None]
    return np.dstack((red, alpha)).astype(np.uint8)


def with_noise(frames: Any) -> Any:
    """The same, with other colors where nothing shows."""
    noise = np.random.default_rng(5).integers(0, 256, frames.shape, np.uint8)
    noise[..., -1] = 0
    return np.where(frames[..., -1:] > 0, frames, noise)


MOVING = np.stack([sticker(shift) for shift in range(0, 40, 10)])
STILLS = {
    "disk": sticker(),
    "photo": photos.cut_out()[::4, ::4],
    "gray": photos.cut_out()[::4, ::4, 2:],
    "nothing": sticker() * 0,
}


@pytest.mark.parametrize("format", ["heic", "avif"])
@pytest.mark.parametrize("kind", STILLS)
def test_stills_do_not_depend_on_invisible_colors(kind: str, format: str) -> None:
    pictures = (vips(np.ascontiguousarray(pixels)) for pixels in (STILLS[kind], with_noise(STILLS[kind])))
    made = [imgsvc.process(picture, {"output": {"format": format}}).data for picture in pictures]
    assert made[0] == made[1]


def test_moving_webp_does_not_depend_on_invisible_colors() -> None:
    strips = (strip(frames, [80] * 4, 0) for frames in (MOVING, with_noise(MOVING)))
    made = [imgsvc.process(frames, {"output": {"format": "webp"}}).data for frames in strips]
    assert made[0] == made[1]


def test_lossless_moving_webp_keeps_its_colors() -> None:
    made = imgsvc.process(strip(MOVING, [80] * 4, 0), {"output": {"format": "webp", "lossless": True}}).data
    shown = imgsvc.process(made, {"output": {"format": "apng"}}).to_numpy()
    assert np.array_equal(shown[..., 3], MOVING[..., 3])
    assert np.array_equal(shown[MOVING[..., 3] > 0], MOVING[MOVING[..., 3] > 0])


@pytest.mark.parametrize(("format", "most"), [("heic", 6), ("avif", 6), ("webp", 3)])
def test_edges_are_not_dark(format: str, most: float) -> None:
    picture = strip(MOVING, [80] * 4, 0) if format == "webp" else vips(MOVING[0])
    frames = MOVING if format == "webp" else MOVING[:1]
    made = imgsvc.process(picture, {"output": {"format": format}}).data
    found = np.asarray(imgsvc.process(made, {"output": {"format": "apng"}}).to_numpy()).reshape(frames.shape)
    whole = frames[..., 3] == 255
    inner = [np.roll(whole, distance, axis) for distance in (-2, 2) for axis in (1, 2)]
    edge = whole & ~np.all(inner, axis=0)
    assert np.abs(found.astype(int) - frames)[edge][:, :3].mean() < most
