"""Options of imgproxy Pro do what its documentation says of them."""

from __future__ import annotations

import base64
import contextlib
import math
from typing import Any

import numpy as np
import pytest

import imgsvc_core as imgsvc
from imgsvc_core.plan.color.constants import LUMA_WEIGHTS
from imgsvc_urls.dialects import ForeignRequest
from imgsvc_urls.dialects.imgproxy import Imgproxy, ImgproxyUrl
from imgsvc_urls.dialects.imgproxy.options import OPTIONS, TABLE
from imgsvc_urls.dialects.imgproxy.pro import PRO
from imgsvc_urls.errors import DialectError
from tests.dialects.pictures import PHOTO, document, facts, output, planned_size
from tests.process.pictures import pixels_of
from tests.support import photos
from tests.support.decoded import decode
from tests.support.photos import Pixels, as_vips

PLAIN = "plain/https://pics.example/a.jpg"
REFUSED = (
    "objects_position", "crop_objects", "progressive_blur", "blur_areas", "blur_detections",
    "draw_detections", "watermark_text", "watermark_shadow", "style",
    "video_thumbnail_second", "video_thumbnail_keyframes", "video_thumbnail_tile",
    "video_thumbnail_animation", "fallback_image_url", "bypass_cache", "cache_tags",
)  # fmt: skip
PICTURE = photos.coffee()[100:140, 200:260]


def asked(options: str, **settings: Any) -> ImgproxyUrl:
    return Imgproxy(**settings).parse(ForeignRequest(f"/unsafe/{options}/{PLAIN}"))


def shown(options: str, picture: Pixels = PICTURE) -> Pixels:
    """The picture as the URL changes it, without loss."""
    image = as_vips(picture)
    info = imgsvc.inspect(image.pngsave_buffer())
    spec = asked(f"{options}/f:png").spec(info)
    assert spec is not None
    data = imgsvc.process(image, spec).data
    assert data is not None
    return pixels_of(data)


def expected(change: Any) -> Pixels:
    """The picture as a function of its channels from 0 to 1 changes it."""
    return np.clip(np.rint(255 * change(PICTURE / 255)), 0, 255).astype(np.uint8)


def luma(colors: Any) -> Any:
    return (colors * LUMA_WEIGHTS).sum(axis=-1, keepdims=True)


RED, BLUE = np.array([1.0, 0, 0]), np.array([0, 0, 1.0])


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ("br:51", lambda c: c + 0.2),
        ("brightness:-255", lambda c: c * 0),
        ("co:1.5", lambda c: (c - 128 / 255) * 1.5 + 128 / 255),
        ("contrast:4", lambda c: (c - 128 / 255) * 4 + 128 / 255),
        ("sa:0", luma),
        ("saturation:3", lambda c: luma(c) + 3 * (c - luma(c))),
        ("a:51:0.5:2", lambda c: _saturated((c + 0.2 - 128 / 255) * 0.5 + 128 / 255, 2)),
        ("a::0.5", lambda c: (c - 128 / 255) * 0.5 + 128 / 255),
        ("mc:1:ff0000", lambda c: luma(c) * RED),
        ("monochrome:0.5", lambda c: 0.5 * c + 0.5 * luma(c) * 0xB3 / 255),
        ("dt:1:0000ff:ff0000", lambda c: BLUE + luma(c) * (RED - BLUE)),
        ("duotone:0.3:0000ff:ff0000", lambda c: 0.7 * c + 0.3 * (BLUE + luma(c) * (RED - BLUE))),
        ("dt:1", luma),
        ("col:0.25:ff0000", lambda c: 0.75 * c + 0.25 * RED),
        ("colorize:0.5", lambda c: 0.5 * c),
    ],
)
def test_colors(options: str, change: Any) -> None:
    found = shown(options).astype(int)
    assert np.abs(found - expected(change)).max() <= 1


@pytest.mark.parametrize(("options", "level"), [("br:-255", 0), ("br:255", 255)])
def test_the_whole_range_of_brightness_ends_in_black_and_white(options: str, level: int) -> None:
    ends = np.repeat(np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8), 4, axis=0)
    assert (shown(options, ends) == level).all()


def _saturated(colors: Any, factor: float) -> Any:
    return luma(colors) + factor * (colors - luma(colors))


def test_neutral_values_change_nothing() -> None:
    for options in ("br:0", "co:1", "sa:1", "a:0:1:1", "mc:0:ff0000", "dt:0", "col:0", "gr:0:f00"):
        assert "filter" not in document(asked(options))


def test_colors_and_alpha() -> None:
    picture = photos.cut_out("rocket")[::8, ::8]
    found = shown("br:51/col:0.5:ff0000:1", picture)
    assert np.array_equal(found[..., 3], picture[..., 3])
    laid = shown("col:0.5:ff0000", picture).astype(int)
    assert np.abs(laid[..., 3] - (128 + picture[..., 3] / 2)).max() <= 1
    transparent = picture[..., 3] == 0
    assert transparent.any()
    assert (laid[transparent][:, :3] == [255, 0, 0]).all()


@pytest.mark.parametrize(
    ("options", "transparent", "opaque"),
    [
        ("gr:1:ff0000", "top", "bottom"),
        ("gradient:1:ff0000:down", "top", "bottom"),
        ("gr:1:ff0000:up", "bottom", "top"),
        ("gr:1:ff0000:180", "bottom", "top"),
        ("gr:1:ff0000:right", "left", "right"),
        ("gr:1:ff0000:left", "right", "left"),
        ("gr:1:ff0000:90", "right", "left"),
        ("gr:1:ff0000:-90", "left", "right"),
        ("gr:1:ff0000::0.5:0.5", "top", "bottom"),
    ],
)
def test_gradients(options: str, transparent: str, opaque: str) -> None:
    sides = {"top": np.s_[0], "bottom": np.s_[-1], "left": np.s_[:, 0], "right": np.s_[:, -1]}
    found = shown(options).astype(int)
    assert np.abs(found - PICTURE)[sides[transparent]].max() <= 4
    assert np.abs(found - [255, 0, 0])[sides[opaque]].max() <= 4


def test_gradients_are_linear_between_start_and_stop() -> None:
    white = np.full((100, 40, 3), 255, np.uint8)
    found = shown("gr:0.5:000:down:0.25:0.75", white)[:, 0, 0].astype(float)
    ramp = np.clip(((np.arange(100) + 0.5) / 100 - 0.25) / 0.5, 0, 1)
    assert np.abs(found - 255 * (1 - 0.5 * ramp)).max() <= 1
    turned = shown("gr:1:000:45", white)[..., 0].astype(int)
    assert turned[0, -1] >= 251
    assert turned[-1, 0] <= 4


def test_sixteen_bits() -> None:
    image = as_vips(photos.deep(PICTURE))
    spec = asked("br:51/co:0.5/f:png").spec(imgsvc.inspect(image.pngsave_buffer()))
    assert spec is not None
    data = imgsvc.process(image, spec).data
    assert data is not None
    found = pixels_of(data) / (65535 if pixels_of(data).dtype == np.uint16 else 255)
    change = (PICTURE / 255 + 0.2 - 128 / 255) * 0.5 + 128 / 255
    assert np.abs(found - np.clip(change, 0, 1)).max() <= 1.5 / 255


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("c:1000:800/car:1", (800, 800)),
        ("c:1000:800/crop_ar:2", (1000, 500)),
        ("c:1000:800/car:1:1", (1000, 1000)),
        ("c:1000:800/car:2:1", (1600, 800)),
        ("c:2000:2000/car:2:1", (2725, 1363)),
        ("c:1000:800/car:0", (1000, 800)),
        ("car:1", (2225, 2225)),
        ("c:0.5:0.5/crop_aspect_ratio:1/w:100", (100, 100)),
    ],
)
def test_the_aspect_ratio_of_crops(options: str, size: tuple[int, int]) -> None:
    assert planned_size(asked(options)) == size


def test_watermarks_by_url_and_of_a_size() -> None:
    url = base64.urlsafe_b64encode(b"https://pics.example/logo.png").decode().rstrip("=")
    settings = {"watermark": "w1", "watermarks": {"https://pics.example/logo.png": "w2"}}
    found = document(asked(f"wm:1/wmu:{url}/wms:80:0", **settings))["watermark"]
    assert (found["id"], found["width"], found["enlarge"], "height" in found) == ("w2", 80, True, False)
    scaled = document(asked("wm:1:ce:0:0:0.1/wms:80:90", **settings))["watermark"]
    assert (scaled["id"], scaled["width"], scaled["height"]) == ("w1", 272, 222)
    with pytest.raises(DialectError, match="'watermarks'") as caught:
        asked(f"wm:1/wmu:{url}", watermark="w1")
    assert caught.value.status == 404


def test_a_translucent_background() -> None:
    found = document(asked("w:100/pd:5/bg:ff0000/bga:0.5/f:png"))
    assert found["background"] == {"color": "80FF0000"}
    assert "background" not in found["padding"]
    assert not output(asked("pd:5/bg:ff0000/bga:0.5/f:png")).get("flatten", False)
    opaque = document(asked("w:100/pd:5/bg:ff0000/f:png"))
    assert opaque["padding"]["background"] == "FF0000"
    assert "background" not in opaque


def test_a_translucent_background_lies_under_pictures_with_alpha() -> None:
    disc = np.zeros((40, 60, 4), np.uint8)
    disc[:, :30] = 0, 0, 255, 255
    disc[:, 30:50] = 0, 0, 255, 128
    source = bytes(as_vips(disc).pngsave_buffer())
    spec = asked("pd:5/bg:ff0000/bga:0.5/f:png").spec(imgsvc.inspect(source))
    assert spec is not None
    found = decode("png", imgsvc.process(source, spec).data)[0]
    assert tuple(found[20, 20]) == (0, 0, 255, 255)
    assert np.abs(found[20, 45].astype(int) - (85, 0, 170, 192)).max() <= 1
    for place in ((2, 2), (20, 60)):
        assert tuple(found[place]) == (255, 0, 0, 128)


MARK = np.zeros((10, 20, 4), np.uint8)
MARK[...] = 255, 0, 0, 255
MARK[:5] = 0, 255, 0, 255


def marked(options: str, width: int = 200, height: int = 100) -> Pixels:
    """What a watermark of 20 x 10, green over red, makes of a black picture."""
    black = bytes(as_vips(np.zeros((height, width, 3), np.uint8)).pngsave_buffer())
    spec = asked(f"{options}/f:png", watermark="w").spec(imgsvc.inspect(black))
    assert spec is not None
    marks = {"w": bytes(as_vips(MARK).pngsave_buffer())}
    return decode("png", imgsvc.process(black, spec, watermarks=marks).data)[0][..., :3]


@pytest.mark.parametrize(("gaps", "across", "down"), [("", 0, 0), (":4:6", 4, 6), (":0:30", 0, 30)])
def test_watermarks_on_a_chessboard(gaps: str, across: int, down: int) -> None:
    every, other = marked(f"wm:1:re{gaps}"), marked(f"wm:1:ch{gaps}")
    kept = np.zeros((100, 200), bool)
    for row in range(-9, 10):
        for column in range(-9, 10):
            if (row + column) % 2 == 0:
                left, top = 90 + column * (20 + across), 45 + row * (10 + down)
                kept[max(0, top) : max(0, top + 10), max(0, left) : max(0, left + 20)] = True
    np.testing.assert_array_equal(other, np.where(kept[..., None], every, 0))
    assert kept.any()
    assert other[50, 100].any()


def test_watermarks_are_turned_clockwise_at_their_size() -> None:
    upright, quarter = marked("wm:1:nowe:7:9"), marked("wm:1:nowe:7:9/wmr:90")
    np.testing.assert_array_equal(quarter[9:29, 7:17], np.rot90(upright[9:19, 7:27], -1))
    np.testing.assert_array_equal(marked("wm:1:nowe:7:9/wm_rot:-270"), quarter)
    np.testing.assert_array_equal(marked("wm:1/watermark_rotate:360"), marked("wm:1"))
    slanted = marked("wm:1/wmr:30").any(2)
    rows, columns = np.flatnonzero(slanted.any(1)), np.flatnonzero(slanted.any(0))
    assert abs(np.ptp(columns) + 1 - (20 * math.cos(math.pi / 6) + 10 / 2)) <= 2
    assert abs(np.ptp(rows) + 1 - (20 / 2 + 10 * math.cos(math.pi / 6))) <= 2
    assert abs(columns.mean() - 99.5) <= 1
    assert abs(rows.mean() - 49.5) <= 1
    tiled = marked("wm:1:re/wmr:90").any(2)
    assert tiled.all()


@pytest.mark.parametrize(
    ("options", "format", "expected"),
    [
        ("jpgo:1:1", "jpg", {"encoding": "progressive", "subsampling": "444"}),
        ("jpeg_options::1:1:1:1:3", "jpg", {"encoding": "baseline", "subsampling": "444"}),
        ("pngo:1:1:16", "png", {"encoding": "progressive", "colors": 16}),
        ("png_options::1", "png", {"colors": 256}),
        ("webpo:lossless", "webp", {"lossless": True}),
        ("webp_options::1:photo", "webp", {"lossless": None}),
        ("avifo:off", "avif", {"subsampling": "444"}),
        ("avif_options:on", "avif", {"subsampling": "420"}),
        ("aq:size:20000", "jpg", {"max_bytes": 20000, "ladder": [80, 60, 45, 33, 24, 18, 13, 9]}),
    ],
)
def test_how_files_are_written(options: str, format: str, expected: dict[str, object]) -> None:
    found = output(asked(f"{options}/f:{format}"))
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    "options",
    ["ra:lanczos3", "ush:none", "icc:srgb", "pg:0", "pages:1", "dpi:0", "hs:none", "aq:none", "da:0"],
)
def test_options_that_say_what_is_done_anyway(options: str) -> None:
    assert asked(options).spec(PHOTO) == asked("w:0").spec(PHOTO)


@pytest.mark.parametrize(
    "options",
    [
        "br:256", "br:1.5", "co:-1", "mc:2", "mc:1:nocolor", "dt:1:1:2:3", "bga:2", "ra:nearest",
        "ush:always", "bc:1", "wmu:gICA",
        "pg:1", "dpi:300", "hs:sha256:00", "aq:dssim",
        "webpo:near_lossless", "pngo:1:1:1", "avifo:maybe",
        "gradient:2", "ba:5:0:0:1:1", "gr:1:0:north", "fiu:aaaa",
        "style:a", "wmt:aaaa", "objects_position:ce", "vts:5", "ct:a",
    ],
)  # fmt: skip
def test_what_is_refused_is_named(options: str) -> None:
    with pytest.raises(DialectError) as caught:
        asked(options)
    assert caught.value.status == 404
    assert f"'{options.split(':')[0]}'" in caught.value.message


def test_options_are_done_or_refused_by_all_names() -> None:
    usual = {
        "brightness": "9", "monochrome": "1:f00", "duotone": "1:f00:0f0", "colorize": "1:f00",
        "adjust": "1:2:3",
        "crop_aspect_ratio": "1.5:1", "watermark_url": "YQ", "watermark_size": "9:9", "png_options": "1:1:9",
        "webp_options": "lossy", "avif_options": "auto", "autoquality": "none", "pages": "1", "page": "0",
        "resizing_algorithm": "lanczos3", "unsharp_masking": "none", "color_profile": "srgb", "dpi": "0",
        "hashsum": "none",
    }  # fmt: skip
    for name, long in ((name, names[0]) for names, _ in PRO for name in names):
        refused = pytest.raises(DialectError, match=f"'{name}' of imgproxy Pro is not supported")
        with refused if long in REFUSED else contextlib.nullcontext():
            asked(f"{name}:{usual.get(long, '1')}", watermarks={"a": "w1"})


def test_every_option_has_its_own_names() -> None:
    assert len(OPTIONS) == sum(len(names) for names, _ in TABLE)


def test_animations_may_be_still() -> None:
    moving = facts("gif", 100, 80, frames=3)
    still = asked("da:1/f:webp").spec(moving)
    assert still is not None
    assert still != asked("f:webp").spec(moving)
