"""What is decided by looking at the picture: faces, interesting regions and corrections, on the whole way."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.pixels.enhance import measure
from imgsvc_core.pixels.face_search import detect
from imgsvc_core.pixels.pointwise import apply_blocks
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.folding import fold
from tests.process.pictures import pixels_of, stored_with_orientation
from tests.support import requires
from tests.support.photos import Pixels, as_vips, astronaut, coffee, rocket

LARGE, SMALL = (420, 40), (20, 20)
"""Left and top of the two portraits of the gathering."""


def gathering() -> Pixels:
    """Two portraits on gray, 940 x 560: a large one at the right, one of half its size at the left."""
    canvas = np.full((560, 940, 3), 120, np.uint8)
    canvas[LARGE[1] : LARGE[1] + 512, LARGE[0] : LARGE[0] + 512] = astronaut()
    canvas[SMALL[1] : SMALL[1] + 282, SMALL[0] : SMALL[0] + 282] = as_vips(astronaut()).resize(0.55).numpy()
    return canvas


def process(source: Any, request: dict[str, Any]) -> tuple[Pixels, tuple[Face, ...]]:
    result = imgsvc.process(source, {**request, "output": {"format": "png"}})
    return pixels_of(result.data or b""), result.faces or ()


def middle(face: Face) -> tuple[float, float]:
    return face.left + face.width / 2, face.top + face.height / 2


@pytest.fixture(autouse=True)
def _opencv() -> None:
    requires.module("cv2")


def test_gravity_face_is_the_largest_and_faces_is_all_of_them() -> None:
    _, found = process(gathering(), {"crop": {"width": 300, "height": 200, "gravity": "face"}})
    assert np.abs(np.subtract(middle(found[0]), (150, 100))).max() < 2
    assert len(found) == 1
    _, found = process(gathering(), {"crop": {"width": 700, "height": 400, "gravity": "faces"}})
    assert len(found) == 2
    left = min(face.left for face in found)
    right = max(face.left + face.width for face in found)
    assert (left + right) / 2 == pytest.approx(350, abs=2)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_faces_are_looked_for_in_the_upright_picture(orientation: int) -> None:
    upright = np.ascontiguousarray(gathering()[:, 400:])
    stored = stored_with_orientation(upright, orientation)
    _, expected = process(upright, {"crop": {"mode": "face"}})
    pixels, found = process(stored, {"crop": {"mode": "face"}})
    assert len(found) == 1
    assert found == expected
    assert pixels.shape[1] == pytest.approx(194, abs=30)


FACE = {"mode": "fit", "gravity": "face"}


def test_faces_outside_the_result_are_not_in_the_result() -> None:
    right, top = (
        {"width": 460, "height": 560, "gravity": "right"},
        {"width": 940, "height": 40, "gravity": "top"},
    )
    assert len(process(gathering(), {"resize": {"width": 94, "height": 55, **FACE}})[1]) == 2
    assert len(process(gathering(), {"crop": right, "resize": {"width": 46, "height": 55, **FACE}})[1]) == 1
    assert len(process(gathering(), {"crop": top, "resize": {"width": 94, "height": 3, **FACE}})[1]) == 0


def test_a_face_at_the_edge_ends_there() -> None:
    head = LARGE[0] + 223, LARGE[1] + 110
    part = {"x": head[0] - 100, "y": head[1], "width": 200, "height": 200}
    _, (face,) = process(gathering(), {"crop": part, "resize": {"width": 100, "height": 100, **FACE}})
    assert face.top == 0
    assert 25 < face.height < face.width


def test_a_face_whose_middle_is_cut_off_is_gone() -> None:
    part = {"x": LARGE[0] + 100, "y": LARGE[1] + 125, "width": 250, "height": 250}
    assert process(gathering(), {"crop": part, "resize": {"width": 100, "height": 100, **FACE}})[1] == ()


def test_gravity_does_not_follow_faces_that_were_cropped_away() -> None:
    between = {"x": 340, "y": 0, "width": 200, "height": 560}
    steered, found = process(gathering(), {"crop": between, "resize": {"width": 50, "height": 280, **FACE}})
    centered, _ = process(
        gathering(), {"crop": between, "resize": {"width": 50, "height": 280, "mode": "fit"}}
    )
    assert found == ()
    assert np.array_equal(steered, centered)


def test_a_smart_crop_is_the_attention_of_libvips() -> None:
    picture = np.concatenate([rocket()[:400], coffee()], axis=1)
    found, _ = process(picture, {"crop": {"mode": "smart", "width": 220, "height": 180}})
    image = as_vips(picture)
    assert np.array_equal(found, image.smartcrop(220, 180, interesting="attention").numpy())
    for other in ("entropy", "centre", "low", "high"):
        assert not np.array_equal(found, image.smartcrop(220, 180, interesting=other).numpy())


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("reduced", [False, True], ids=["whole", "reduced by the decoder"])
def test_after_a_smart_crop_the_faces_are_where_they_are_seen(orientation: int, reduced: bool) -> None:
    inside = np.pad(astronaut(), ((90, 40), (400, 300), (0, 0)), constant_values=120)
    large = as_vips(inside).resize(2).numpy()
    source = stored_with_orientation(large, orientation)
    if reduced:
        source = pyvips.Image.new_from_buffer(source, "").jpegsave_buffer(Q=95, keep="exif")
    smart = {"mode": "smart", "width": 800, "height": 1040}
    pixels, found = process(source, {"crop": smart, "resize": {"width": 400, "height": 520, **FACE}})
    (seen,) = detect(as_vips(pixels))
    (face,) = found
    assert np.abs(np.subtract(middle(face), middle(seen))).max() < 6
    assert face.width == pytest.approx(seen.width, abs=15)


@pytest.mark.parametrize("factor", [0.5, 1, 2, 3])
def test_enhancement_looks_at_all_of_a_frame_of_any_size(factor: float) -> None:
    dark, light = coffee()[:240:2, ::4] * 0.4, coffee()[-240::2, ::4]
    first = np.concatenate([dark, light]).astype(np.uint8)
    request = {
        "resize": {"width": round(factor * first.shape[1])},
        "auto": {"enhance": True},
        "output": {"format": "webp", "lossless": True},
    }
    frames = [Image.fromarray(pixels) for pixels in (first, first[::-1])]
    data = io.BytesIO()
    frames[0].save(data, "WEBP", save_all=True, append_images=frames[1:], duration=50, lossless=True)
    moving, still = (imgsvc.process(source, request).data for source in (data.getvalue(), frames[0]))
    found, expected = (pyvips.Image.new_from_buffer(result, "").numpy() for result in (moving, still))
    assert np.abs(found[..., :3].astype(int) - expected[..., :3]).max() <= 1


def test_enhancement_is_measured_once_for_an_animation() -> None:
    first, second = (coffee()[::2, ::2] * 0.4).astype(np.uint8), np.ascontiguousarray(coffee()[::2, ::2])
    data = io.BytesIO()
    Image.fromarray(first).save(
        data, "WEBP", save_all=True, append_images=[Image.fromarray(second)], duration=50, lossless=True
    )
    request = {"auto": {"enhance": True}, "output": {"format": "webp", "lossless": True}}
    result = imgsvc.process(data.getvalue(), request)
    strip = pyvips.Image.new_from_buffer(result.data, "n=-1").numpy()[..., :3]
    corrections = measure(as_vips(first))
    assert corrections != measure(as_vips(second))
    for found, frame in zip(strip.reshape(2, *first.shape), (first, second), strict=True):
        expected = apply_blocks(as_vips(frame), fold(corrections)).numpy()
        assert np.abs(found.astype(int) - expected).max() <= 1
