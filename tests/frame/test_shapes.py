"""Masks, padding, borders and flat backgrounds, against plain arithmetic on real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.pixels.resampling import rotate
from imgsvc_core.pixels.shapes import add_padding, apply_mask, draw_border, flatten
from imgsvc_core.plan.geometry import Area
from imgsvc_core.spec import Border, Color
from tests.support.photos import Pixels, as_vips, camera, coffee, cut_out, deep

RED, GRAY, GLASS = Color(200, 30, 20), Color(90, 90, 90), Color(10, 200, 90, 128)
PICTURES = {
    "rgb": coffee()[100:180, 200:320],
    "gray": camera()[100:180, 200:320],
    "rgba": cut_out("coffee")[100:180, 200:320],
    "16 bit": deep(coffee()[100:180, 200:320]),
}


def _share(width: int, height: int, across: float, down: float, times: int = 100) -> Pixels:
    """How much of each pixel lies in a rectangle with corners of these radii, line by finer line."""
    lines = np.abs((np.arange(height * times) + 0.5) / times - height / 2)
    into = np.clip((lines - height / 2 + down) / down, 0, 1)
    reach = (width / 2 - across + across * np.sqrt(1 - into**2))[:, None]
    left = np.arange(width) - width / 2
    covered = np.clip(np.minimum(left + 1, reach) - np.maximum(left, -reach), 0, 1)
    return covered.reshape(height, times, width).mean(axis=1)


def _disc_share(width: int, height: int) -> Pixels:
    return _share(width, height, width / 2, height / 2, times=400)


_SIZES = [
    (120, 80), (33, 90), (64, 64), (51, 51), (301, 21), (1, 1), (1, 2), (1, 9), (40, 1), (2, 2), (2, 25),
    (99, 3),
]  # fmt: skip


@pytest.mark.parametrize(("width", "height"), _SIZES)
def test_the_ellipse_touches_all_sides_and_has_soft_edges(width: int, height: int) -> None:
    picture = as_vips(np.full((height, width, 3), 200, np.uint8))
    alpha = apply_mask(picture, "ellipse", 0, None)[3].numpy() / 255
    alpha = alpha.reshape(height, width)
    assert np.abs(alpha - _disc_share(width, height)).max() < 0.004
    assert alpha.mean() == pytest.approx(np.pi / 4, rel=0.005)
    if min(width, height) < 20:
        return
    middle = (alpha[height // 2, 0], alpha[height // 2, -1], alpha[0, width // 2], alpha[-1, width // 2])
    assert min(middle) > 0.5
    assert max(alpha[0, 0], alpha[-1, -1], alpha[0, -1], alpha[-1, 0]) == 0


@pytest.mark.parametrize("shape", ["ellipse", "rounded"])
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 70))
def test_shapes_of_any_size_are_symmetric_and_without_holes(
    shape: str, width: int, height: int, radius: int
) -> None:
    picture = as_vips(np.full((height, width, 3), 200, np.uint8))
    alpha = apply_mask(picture, shape, radius, None)[3].numpy().reshape(height, width).astype(int)
    assert np.array_equal(alpha, alpha[::-1])
    assert np.array_equal(alpha, alpha[:, ::-1])
    assert (np.diff(alpha[: (height + 1) // 2], axis=0) >= 0).all()
    assert (np.diff(alpha[:, : (width + 1) // 2], axis=1) >= 0).all()
    if min(width, height) > 2:
        assert alpha[height // 2, width // 2] == 255


def test_a_radius_of_nothing_cuts_nothing() -> None:
    for pixels in PICTURES.values():
        for part in (pixels, pixels[:1], pixels[:, :1]):
            found = apply_mask(as_vips(part), "rounded", 0, GRAY).numpy()
            visible = part[..., 3] > 0 if part.ndim == 3 and part.shape[2] == 4 else ...
            assert np.array_equal(found.reshape(part.shape)[visible], part[visible])


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 50))
def test_rounded_corners_cut_off_exactly_their_area(width: int, height: int, radius: int) -> None:
    picture = as_vips(np.full((height, width, 3), 200, np.uint8))
    alpha = apply_mask(picture, "rounded", radius, None)[3].numpy().reshape(height, width) / 255
    around = min(radius, width / 2, height / 2)
    assert np.abs(alpha - _share(width, height, around, around)).max() < 0.004


def test_areas_stay_exact_in_large_pictures() -> None:
    tall = apply_mask(as_vips(np.full((16_000, 2, 3), 200, np.uint8)), "ellipse", 0, None)[3].numpy()
    assert np.abs(tall / 255 - _disc_share(2, 16_000)).max() < 0.004
    line = apply_mask(as_vips(np.full((1, 16_000, 3), 9, np.uint8)), "rounded", 9, None)[3].numpy()
    assert line.reshape(-1)[1:-1].min() == 255


def test_rounded_corners_have_their_radius() -> None:
    picture = as_vips(np.full((80, 120, 3), 200, np.uint8))
    alpha = apply_mask(picture, "rounded", 20, None)[3].numpy()
    assert (alpha[20:60] == 255).all()
    assert (alpha[:, 20:100] == 255).all()
    quarter = _disc_share(40, 40)[:20, :20]
    assert np.abs(alpha[:20, :20] / 255 - quarter).max() < 0.004
    largest = apply_mask(picture, "rounded", 9999, None)[3].numpy()
    assert np.array_equal(largest, apply_mask(picture, "rounded", 40, None)[3].numpy())


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("background", [None, RED, GRAY, GLASS])
def test_a_mask_mixes_picture_and_background(name: str, background: Color | None) -> None:
    pixels = PICTURES[name]
    image = as_vips(pixels)
    share = (
        apply_mask(as_vips(np.full((*pixels.shape[:2], 3), 9, np.uint8)), "ellipse", 0, None)[3].numpy()
        / 255.0
    )
    found = apply_mask(image, "ellipse", 0, background)
    assert found.format == image.format
    top = 65535 if image.format == "ushort" else 255
    expected = _mixed(pixels, background, share)
    actual = _rgba(found.numpy(), top)
    visible = expected[..., 3] > 0.02
    level = 3.2 / 255  # the share itself is known to half a level only, and small alpha magnifies that
    assert np.abs(actual[..., 3] - expected[..., 3]).max() <= level
    weight = expected[..., 3:]
    assert (np.abs(actual[..., :3] - expected[..., :3]) * weight)[visible].max() <= level


def test_nothing_of_the_picture_changes_inside() -> None:
    for pixels in PICTURES.values():
        for background in (None, GRAY):
            found = apply_mask(as_vips(pixels), "rounded", 10, background).numpy()
            inner = found[20:60, 20:100]
            kept = pixels[20:60, 20:100]
            kept = kept if kept.ndim == 3 else kept[..., None]
            visible = kept[..., -1] > 0 if pixels.ndim == 3 and pixels.shape[2] == 4 else ...
            inner = inner.reshape(*inner.shape[:2], -1)[..., : kept.shape[2]]
            assert np.array_equal(inner[visible], kept[visible])


@given(
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.sampled_from([None, RED, GRAY, GLASS]),
)
def test_padding_adds_its_color_and_keeps_the_picture(
    top: int, right: int, bottom: int, left: int, background: Color | None
) -> None:
    for pixels in PICTURES.values():
        found = add_padding(as_vips(pixels), top, right, bottom, left, background)
        height, width = pixels.shape[:2]
        assert (found.width, found.height) == (width + left + right, height + top + bottom)
        white = 65535 if found.format == "ushort" else 255
        values = _rgba(found.numpy(), white)
        inside = values[top : top + height, left : left + width]
        assert np.array_equal(inside, _rgba(pixels, white))
        outside = np.ones(values.shape[:2], bool)
        outside[top : top + height, left : left + width] = False
        if outside.any():
            assert np.allclose(values[outside], _color(background), atol=1e-6)


@pytest.mark.parametrize("name", PICTURES)
def test_a_gray_color_leaves_gray_pictures_gray(name: str) -> None:
    image = as_vips(PICTURES[name])
    bands = image.bands
    assert add_padding(image, 1, 1, 1, 1, GRAY).bands == bands
    assert add_padding(image, 1, 1, 1, 1, RED).bands == max(3, bands)
    assert add_padding(image, 1, 1, 1, 1, None).bands == (bands if image.hasalpha() else bands + 1)


def test_a_border_surrounds_the_picture() -> None:
    pixels = PICTURES["rgb"]
    found = draw_border(as_vips(pixels), Border(size=7, color=RED)).numpy()
    assert found.shape == (94, 134, 3)
    assert np.array_equal(found[7:-7, 7:-7], pixels)
    assert (found[:7] == RED.rgb).all()
    assert (found[:, -7:] == RED.rgb).all()


def test_a_round_border_has_an_inner_and_an_outer_radius() -> None:
    found = draw_border(as_vips(PICTURES["rgb"]), Border(size=8, color=RED, radius=24)).numpy()
    assert found.shape == (96, 136, 4)
    assert found[0, 0, 3] == 0
    assert (found[4, 60] == (*RED.rgb, 255)).all()
    assert (found[9, 9] == (*RED.rgb, 255)).all()  # outside of the inner corner, whose radius is 16
    assert np.array_equal(found[24:-24, 24:-24, :3], PICTURES["rgb"][16:-16, 16:-16])


def test_flattening_is_compositing() -> None:
    pixels = PICTURES["rgba"]
    found = flatten(as_vips(pixels), RED).numpy().astype(float)
    alpha = pixels[..., 3:] / 255
    expected = pixels[..., :3] * alpha + (1 - alpha) * np.array(RED.rgb)
    assert np.abs(found - expected).max() <= 1
    opaque = as_vips(PICTURES["rgb"])
    assert flatten(opaque, RED) is opaque


def _rgba(pixels: Pixels, white: int) -> Pixels:
    values = (pixels if pixels.ndim == 3 else pixels[..., None]) / white
    color, alpha = (
        (values[..., :-1], values[..., -1:])
        if values.shape[2] in (2, 4)
        else (values, np.ones_like(values[..., :1]))
    )
    return np.concatenate([np.broadcast_to(color, (*color.shape[:2], 3)), alpha], axis=2)


def _color(color: Color | None) -> Pixels:
    return np.array([0, 0, 0, 0] if color is None else [*color.rgb, color.alpha]) / 255


def _mixed(pixels: Pixels, background: Color | None, share: Pixels) -> Pixels:
    """Premultiplied mixing, as straight alpha in [0, 1]."""
    picture = _rgba(pixels, 65535 if pixels.dtype == np.uint16 else 255)
    under = _color(background)
    alpha = picture[..., 3] * share + under[3] * (1 - share)
    color = (
        picture[..., :3] * (picture[..., 3] * share)[..., None]
        + under[:3] * (under[3] * (1 - share))[..., None]
    )
    return np.concatenate([color / np.maximum(alpha, 1e-9)[..., None], alpha[..., None]], axis=2)


@pytest.mark.parametrize(("size", "radius", "inner"), [(10, 30, 20), (30, 30, 0), (40, 30, 0)])
def test_the_inner_edge_of_a_border_has_the_radius_that_its_width_leaves(
    size: int, radius: int, inner: int
) -> None:
    picture = as_vips(np.full((80, 120, 3), 200, np.uint8))
    bordered = draw_border(picture, Border(size=size, color=RED, radius=radius)).numpy()
    cut = apply_mask(picture, "rounded", inner, RED).numpy()[..., :3]
    assert np.abs(bordered[size:-size, size:-size, :3].astype(int) - cut).max() <= 1


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("background", [GRAY, GLASS])
def test_the_corners_of_a_rotated_picture_have_the_background(name: str, background: Color) -> None:
    picture = as_vips(PICTURES[name])
    turned = rotate(picture, 45, background, Area(0, 0, picture.width, picture.height), 150, 150)
    scale = 257 if name == "16 bit" else 1
    color = background.rgb[:1] if turned.bands < 3 else background.rgb
    expected = [*color, *([background.alpha] if turned.hasalpha() else [])]
    assert turned(0, 0) == [scale * value for value in expected]


@pytest.mark.parametrize("alpha", [255, 200, 3])
@pytest.mark.parametrize("white", [np.uint8(255), np.uint16(65_535)])
@pytest.mark.parametrize("angle", [1.0, 17.5, 45.0, 200.0])
def test_a_turn_keeps_the_color_of_a_picture_with_alpha(alpha: int, white: Any, angle: float) -> None:
    color = [int(white), int(white) // 2, 7, alpha * (int(white) // 255)]
    picture = as_vips(np.full((40, 60, 4), color, white.dtype))
    turned = rotate(picture, angle, None, Area(0, 0, 60, 40), 90, 90).numpy().astype(int)
    inside = turned[35:55, 35:55].reshape(-1, 4)
    assert np.array_equal(np.unique(inside, axis=0), [color])
    assert turned[turned[..., 3] > 0][:, 0].min() == white
