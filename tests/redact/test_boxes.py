"""Where boxes lie, and what covers them: against arrays, with all orientations."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

import imgsvc_core as imgsvc
from imgsvc_core.errors import SpecError
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.table import FORMATS
from imgsvc_core.plan import compile_plan
from imgsvc_core.plan.faces import Face
from imgsvc_core.plan.redaction import redaction_of
from imgsvc_core.spec.density import at_density
from tests.support.photos import Pixels, coffee, deep, number_of_colors

WIDTH, HEIGHT = 60, 41
PHOTO = coffee()[100 : 100 + HEIGHT, 200 : 200 + WIDTH] // 2 + 64
SPAN = st.tuples(st.integers(-20, WIDTH - 1), st.integers(1, 90)).filter(lambda span: sum(span) > 0)
MODES = ("color", "pixels", "blur")


def stored(pixels: Pixels, orientation: int, format: str = "PNG", **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format, exif=exif.tobytes(), **options)
    return file.getvalue()


def upright(data: bytes) -> Pixels:
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))


def redacted(source: Any, *entries: dict[str, Any], **request: Any) -> Pixels:
    return np.asarray(imgsvc.process(source, {"redact": list(entries), **request}).to_numpy())


@given(
    st.integers(1, 8), st.lists(st.tuples(SPAN, SPAN, st.sampled_from(MODES)), min_size=1, max_size=3)
)  # fmt: skip
@settings(max_examples=60)
def test_exactly_the_boxes_of_the_upright_picture_change(orientation: int, boxes: list[Any]) -> None:
    source = stored(PHOTO, orientation)
    before = upright(source)
    height, width = before.shape[:2]
    boxes = [(x, y, mode) for x, y, mode in boxes if x[0] < width and y[0] < height]
    inside, colored = np.zeros((height, width), bool), np.zeros((height, width), bool)
    entries = []
    for (left, across), (top, down), mode in boxes:
        part = slice(max(top, 0), top + down), slice(max(left, 0), left + across)
        inside[part], colored[part] = True, mode == "color"
        entries.append({"x": left, "y": top, "width": across, "height": down, "mode": mode})
        if mode == "color":
            entries[-1]["color"] = "FF00FF"
    after = redacted(source, *entries)
    np.testing.assert_array_equal(after[~inside], before[~inside])
    assert (after[colored] == (255, 0, 255)).all()
    assert not (after[inside & ~colored] == (255, 0, 255)).all(axis=-1).any()


@given(
    st.tuples(st.integers(-50_000, 99_000), st.integers(1, 120_000)).filter(lambda span: sum(span) > 0),
    st.integers(1, 3000),
)
def test_percent_cover_each_pixel_that_they_touch(span: tuple[int, int], side: int) -> None:
    start, length = (f"{part / 1000}%" for part in span)
    info = ImageInfo(format="png", width=side, height=7, colorspace="srgb", bytes=1)
    [asked] = imgsvc.parse({"redact": [{"x": start, "y": 0, "width": length, "height": 7}]}).redact
    [covered] = redaction_of([asked], info, None).covered
    exact = span[0] * side / 100_000, sum(span) * side / 100_000
    assert covered.box.left <= max(exact[0], 0) + 1e-6
    assert covered.box.right >= min(exact[1], side) - 1e-6
    assert covered.box.left > exact[0] - 1 - 1e-6 or covered.box.left == 0
    assert covered.box.right < exact[1] + 1 + 1e-6 or covered.box.right == side


@pytest.mark.parametrize("scale", [2, 3.7, 8])
@pytest.mark.parametrize("format", ["JPEG", "WEBP", "PNG"])
def test_a_smaller_result_shows_none_of_it(format: str, scale: float) -> None:
    """Decoders that scale down mix pixels, so all of them are covered first."""
    pixels = np.full((400, 640, 3), 200, np.uint8)
    pixels[113:251, 97:303] = (255, 0, 0)
    source = stored(pixels, 1, format, quality=95)
    box = {"x": 97, "y": 113, "width": 206, "height": 138, "color": "C8C8C8"}
    small = redacted(source, box, resize={"width": math.ceil(640 / scale)})
    assert np.abs(small.astype(int) - 200).max() <= 3  # 55 levels and more beside red
    plan = compile_plan(imgsvc.parse({"redact": [box], "resize": {"width": 80}}), imgsvc.inspect(source))
    assert plan.load.scale == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bands", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
def test_all_kinds_of_pixels_are_covered(mode: str, bands: int, bits: int) -> None:
    pixels = np.full((40, 60, bands), 190, np.uint8)
    pixels[10:30, 20:50] = 3
    if bits == 16:
        pixels = deep(pixels)
    after = redacted(pixels.squeeze(), {"x": 20, "y": 10, "width": 30, "height": 20, "mode": mode})
    peak = 255 if bits == 8 else 65535
    shown = np.atleast_3d(after)[10:30, 20:50] / peak
    if mode == "color":
        assert (shown[..., : bands - (bands in (2, 4))] == 0).all()
        assert bands in (1, 3) or (shown[..., -1] == 1).all()
    else:
        assert (np.abs(shown - 190 / 255) < 0.1).all()


def test_the_shape_of_transparent_pixels_goes_too() -> None:
    pixels = np.full((40, 60, 4), 255, np.uint8)
    pixels[12:28, 22:48:2, 3] = 0
    for mode in MODES:
        after = redacted(pixels, {"x": 20, "y": 10, "width": 30, "height": 20, "mode": mode})
        assert after.shape[-1] == 3 or (after[..., 3] == 255).all()


def test_cells_are_square_and_flat_and_a_blur_is_smooth() -> None:
    box = {"x": 8, "y": 8, "width": 48, "height": 24}
    cells = redacted(PHOTO, {**box, "mode": "pixels"})[8:32, 8:56].reshape(4, 6, 8, 6, 3)
    assert (cells == cells[:, :1, :, :1]).all()
    assert number_of_colors(cells) == 32
    blurred = redacted(PHOTO, {**box, "mode": "blur"})[8:32, 8:56].astype(int)
    assert np.abs(np.diff(blurred, axis=0)).max() <= 24
    assert np.abs(np.diff(blurred, axis=1)).max() <= 24


def test_a_box_of_pixels_is_seen_on_a_flat_ground() -> None:
    for ground in (0, 128, 255):
        flat = np.full((80, 120, 3), ground, np.uint8)
        for mode in ("pixels", "blur"):
            after = redacted(flat, {"x": 20, "y": 20, "width": 80, "height": 40, "mode": mode})
            assert np.ptp(after[20:60, 20:100].astype(int)) >= 12


def test_later_boxes_lie_over_earlier_ones() -> None:
    box = {"x": 5, "y": 5, "width": 20, "height": 20}
    after = redacted(PHOTO, {**box, "color": "F00"}, {**box, "x": 10, "color": "0F0"})
    assert tuple(after[10, 12]) == (0, 255, 0)
    assert tuple(after[10, 7]) == (255, 0, 0)


@pytest.mark.parametrize(
    ("box", "path"),
    [
        ({"x": WIDTH, "y": 0, "width": 5, "height": 5}, "redact[1].x"),
        ({"x": -5, "y": 0, "width": 5, "height": 5}, "redact[1].x"),
        ({"x": 0, "y": HEIGHT, "width": 5, "height": 5}, "redact[1].y"),
        ({"x": 0, "y": "-30%", "width": 5, "height": "30%"}, "redact[1].y"),
        ({"x": 0, "y": 0, "width": "0%", "height": 5}, "redact[1].width"),
        ({"x": 0, "y": 0, "width": 5, "height": "0%"}, "redact[1].height"),
        ({"x": 0, "y": 0, "width": 5}, "redact[1].height"),
        ({"x": 0.5, "y": 0, "width": 5, "height": 5}, "redact[1].x"),
        ({"x": 0, "y": 0, "width": 5, "height": 5, "mode": "blur", "color": "fff"}, "redact[1].color"),
        ({"x": 0, "y": 0, "width": 5, "height": 5, "color": "80FFFFFF"}, "redact[1].color"),
        ({"x": 0, "y": 0, "width": 5, "height": 5, "if_found": True}, "redact[1].if_found"),
        ({"x": 0, "faces": True}, "redact[1].x"),
        ({"x": 0, "y": 0, "width": 5, "height": 5, "mode": "noise"}, "redact[1].mode"),
    ],
)
def test_what_cannot_be_covered_is_refused(box: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as caught:
        redacted(PHOTO, {"x": 1, "y": 1, "width": 4, "height": 4}, box)
    assert [problem.path for problem in caught.value.problems] == [path]


def test_all_boxes_outside_are_told_at_once() -> None:
    outside = {"x": 0, "y": 900, "width": 4, "height": 4}
    with pytest.raises(SpecError) as caught:
        redacted(PHOTO, outside, {**outside, "y": 0}, outside)
    assert [problem.path for problem in caught.value.problems] == ["redact[0].y", "redact[2].y"]


def test_boxes_count_pixels_of_the_source_at_any_density() -> None:
    spec = imgsvc.parse({"redact": [{"x": 1, "y": 2, "width": 3, "height": 4}], "resize": {"width": 20}})
    assert at_density(spec, 3).redact == spec.redact
    assert at_density(spec, 3).resize != spec.resize


BOXES = st.tuples(st.integers(-9, 170), st.integers(-9, 90), st.integers(1, 60), st.integers(1, 60))
LOSSY = {
    "jpg": {"4:2:0": 16, "4:4:4": 8, "4:2:2": 16, "4:1:1": 32},
    "webp": {"4:2:0": 1},
    "heic": {"4:2:0": 1},
    "avif": {"4:4:4": 1},
    "jxl": {"4:4:4": 1},
    "tiff": {"4:2:0": 1},
    "jp2": {"4:4:4": 1},
}
BEYOND = {"jpg": 1, "webp": 23, "heic": 63, "avif": 79, "jxl": 79, "tiff": 23, "jp2": 128}


@given(
    st.sampled_from([(format, chroma) for format, kinds in LOSSY.items() for chroma in kinds]),
    st.integers(1, 8), st.integers(180, 200), st.integers(100, 130), BOXES,
)  # fmt: skip
def test_boxes_cover_all_blocks_that_they_touch(
    kind: tuple[str, str], orientation: int, width: int, height: int, box: tuple[int, int, int, int]
) -> None:
    format, chroma = kind
    info = ImageInfo(
        format=format, width=width, height=height, colorspace="srgb", bytes=1, subsample=chroma,
        orientation=orientation,
    )  # fmt: skip
    left, top, across, down = box
    if left + across <= 0 or top + down <= 0 or left >= info.upright_size[0] or top >= info.upright_size[1]:
        return
    [asked] = imgsvc.parse({"redact": [{"x": left, "y": top, "width": across, "height": down}]}).redact
    [covered] = redaction_of([asked], info, None).covered
    index = np.zeros((height, width, 3), np.uint8)
    side, beyond = LOSSY[format][chroma], BEYOND[format]
    index[..., 0] = (np.arange(height) // side)[:, None]
    index[..., 1] = np.arange(width) // side
    index = upright(stored(index, orientation))
    touched = index[max(top, 0) : top + down, max(left, 0) : left + across].reshape(-1, 3)
    wanted = (index[..., None, :] == np.unique(touched, axis=0)).all(-1).any(-1)
    mine = np.zeros(wanted.shape, bool)
    mine[covered.box.top : covered.box.bottom, covered.box.left : covered.box.right] = True
    assert mine[wanted].all()
    for lines, start, end, most in (
        (wanted.any(1), covered.box.top, covered.box.bottom, wanted.shape[0]),
        (wanted.any(0), covered.box.left, covered.box.right, wanted.shape[1]),
    ):
        first, last = lines.nonzero()[0][[0, -1]]
        assert (start, end) == (max(first - beyond, 0), min(last + 1 + beyond, most))


def test_all_formats_with_loss_are_known_to_leave_traces() -> None:
    assert {name for name, row in FORMATS.items() if row.quality is not None} <= LOSSY.keys()


@pytest.mark.parametrize(
    ("places", "boxes"),
    [
        ([(20, 20, 10, 20), (24, 20, 10, 20), (150, 50, 40, 50)], [(18, 16, 18, 28), (142, 40, 56, 60)]),
        (
            [(20, 20, 20, 20), (70, 20, 20, 20), (45, 20, 20, 20)],
            [(16, 16, 78, 28)],
        ),  # the last connects them
    ],
)
def test_faces_of_all_frames_are_covered_with_room_around_them(places: list[Any], boxes: list[Any]) -> None:
    info = ImageInfo(format="gif", width=200, height=100, colorspace="srgb", bytes=1, frames=3)
    [asked] = imgsvc.parse({"redact": [{"faces": True}]}).redact
    faces = [Face(*place, 0.9) for place in places]
    assert [item.box for item in redaction_of([asked], info, faces).covered] == boxes
