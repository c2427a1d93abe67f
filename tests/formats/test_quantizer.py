"""Palettes of GIF and PNG: nothing that can be seen is lost, small colored things least."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

import imgsvc_core as imgsvc
from imgsvc_core.formats.quantizer import Histogram
from tests.formats.test_animation import strip, write
from tests.support import photos
from tests.support.decoded import decode
from tests.support.handmade import pillow, vips
from tests.support.photos import Pixels, moving_frames

ORANGE = (255, 90, 0)
GRAYS = np.add.outer(np.arange(180), np.arange(240)).astype(np.uint8)


def rgb(gray: Pixels) -> Pixels:
    return np.repeat(gray[..., None], 3, axis=-1)


def gif(frames: list[Pixels], colors: int = 256) -> bytes:
    """An animation whose frames have the palette of the first one."""
    first = Image.fromarray(frames[0]).quantize(colors)
    images = [first, *(Image.fromarray(frame).quantize(palette=first, dither=0) for frame in frames[1:])]
    file = io.BytesIO()
    images[0].save(file, "GIF", save_all=True, append_images=images[1:], duration=50, loop=0)
    return file.getvalue()


def shown(data: bytes | None) -> Any:
    """All frames, in RGB."""
    picture = Image.open(io.BytesIO(data or b""))
    found = []
    for number in range(getattr(picture, "n_frames", 1)):
        picture.seek(number)
        found.append(np.asarray(picture.convert("RGB")).astype(int))
    return np.stack(found)


def shown_alpha(data: bytes) -> Any:
    return decode("gif", data)[0][..., 3]


def made(source: bytes, request: dict[str, Any], **options: Any) -> tuple[Any, Any]:
    """The frames of the result as GIF, and exactly."""
    files = [
        imgsvc.process(source, {**request, "output": {"format": format}}, **options).data
        for format in ("gif", "apng")
    ]
    return shown(files[0]), shown(files[1])


@pytest.mark.parametrize("colors", [2, 16, 100, 254])
def test_a_gif_whose_colors_stay_is_exact(colors: int) -> None:
    source = gif(moving_frames(3, 160, 120), colors)
    for request in (
        {},
        {"flip": {"horizontal": True}},
        {"crop": {"width": 90, "height": 50, "x": 3, "y": 5}},
    ):
        found, exact = made(source, request)
        assert np.array_equal(found, exact)
    assert imgsvc.process(source).notes == ()


def test_256_colors_are_off_by_one_level_at_most() -> None:
    found, exact = made(gif([rgb(GRAYS), rgb(GRAYS[::-1])]), {})
    assert np.abs(found - exact).max() <= 1
    assert (found != exact).mean() < 0.02


def test_a_colored_watermark_on_grays_keeps_its_color() -> None:
    mark = Image.new("RGBA", (70, 14), (0, 0, 0, 0))
    ImageDraw.Draw(mark).text((2, 1), "example.com", fill=(*ORANGE, 255))
    request = {"watermark": {"id": "mark", "gravity": "bottom-right"}}
    found, exact = made(
        gif([rgb(GRAYS), rgb(GRAYS[::-1])]), request, watermarks={"mark": pillow(mark, "PNG")}
    )
    assert np.abs(found - exact).max() <= 12
    colored = np.ptp(exact, axis=-1) > 100
    assert colored.sum() > 50
    assert np.abs(found - exact)[colored].mean() < 3


@pytest.mark.parametrize(
    "request_",
    [
        {"adjust": {"saturation": -100}},
        {"adjust": {"temperature": 40}},
        {"adjust": {"hue": 120}},
        {"filter": {"duotone": {"light": "FFCC00", "dark": "000066"}}},
    ],
    ids=["saturation", "temperature", "hue", "duotone"],
)
def test_colors_that_change_get_a_palette_of_their_own(request_: dict[str, Any]) -> None:
    source = gif([photos.coffee()[:200, :300]])
    found, exact = made(source, request_)
    assert np.abs(found - exact).max() <= 2
    found, exact = made(source, {**request_, "resize": {"width": 150}})
    assert np.abs(found - exact).mean() < 4
    assert np.abs((found - exact).mean(axis=(0, 1, 2))).max() < 0.5
    if "saturation" in str(request_):
        assert np.ptp(found, axis=-1).max() <= 1


@pytest.mark.parametrize("size", [2, 6])
@pytest.mark.parametrize("color", [ORANGE, (0, 200, 0), (60, 60, 255)])
@pytest.mark.parametrize("picture", [rgb(photos.camera()), photos.astronaut()], ids=["gray", "colored"])
def test_small_colored_things_keep_their_color(picture: Pixels, color: tuple[int, ...], size: int) -> None:
    place = (slice(20, 20 + size), slice(30, 30 + size))
    marked = picture.copy()
    marked[place] = color
    most = [16, 64, 256] if picture[..., 0].tolist() == picture[..., 1].tolist() else [64, 256]
    for colors in most:
        for format in ("png", "gif"):
            found = shown(write(vips(marked), format, colors=colors))[0]
            assert np.abs(np.median(found[place], axis=(0, 1)) - color).max() <= 8


def test_a_small_thing_in_a_late_frame_keeps_its_color() -> None:
    frames = np.stack(moving_frames(6, 160, 120))
    frames[4, 50:53, 60:63] = (255, 0, 255)
    found = shown(write(strip(frames, [50] * 6, 0), "gif"))
    assert np.abs(found[4, 50:53, 60:63] - (255, 0, 255)).max() <= 8


def test_scenes_that_share_no_colors_get_palettes_of_their_own() -> None:
    scenes = [photos.coffee()[:200, :200], photos.astronaut()[:200, :200], photos.cat()[:200, :200]]
    frames = np.stack([scene for scene in scenes for _ in range(2)])
    found = shown(write(strip(frames, [50] * 6, 0), "gif"))
    for number, scene in enumerate(scenes):
        alone = shown(write(vips(scene), "gif"))[0]
        error, least = (np.square(picture - scene).mean() for picture in (found[2 * number], alone))
        assert error < 1.3 * least


def test_transparency_costs_no_color() -> None:
    picture = photos.cut_out()
    decoded = decode("gif", write(vips(picture), "gif"))[0].reshape(picture.shape)
    assert np.array_equal(decoded[..., 3] > 0, picture[..., 3] > 127)
    visible = picture[..., 3] > 127
    assert np.abs(decoded[..., :3].astype(int) - picture[..., :3])[visible].mean() < 5


def test_colors_that_do_not_show_cost_none() -> None:
    picture = np.random.default_rng(3).integers(0, 256, (60, 80, 4), np.uint8)
    picture[..., 3] = 127
    few = Image.fromarray(photos.coffee()[:40, :50]).quantize(200).convert("RGB")
    picture[5:45, 6:56, :3] = few
    picture[5:45, 6:56, 3] = 128
    found = decode("gif", write(vips(picture), "gif"))[0].reshape(picture.shape)
    assert np.array_equal(found[..., 3] > 0, picture[..., 3] > 127)
    assert np.array_equal(found[5:45, 6:56, :3], few)


@pytest.mark.parametrize("colors", [2, 3, 4, 16, 64, 99, 100, 200, 256])
@pytest.mark.parametrize("shape", ["hard", "soft", "mostly soft", "nowhere opaque", "invisible"])
@pytest.mark.parametrize("bands", [2, 4])
def test_few_colors_tint_no_ground_and_let_none_shine_through(bands: int, shape: str, colors: int) -> None:
    picture = photos.astronaut()[::4, ::4]
    rows, columns = np.mgrid[-1 : 1 : len(picture) * 1j, -1 : 1 : picture.shape[1] * 1j]
    edge = 1 - np.hypot(rows, columns)
    alpha = {
        "hard": 255 * (edge > 0.3), "soft": 900 * edge - 200, "mostly soft": 260 * edge,
        "nowhere opaque": 250 * edge, "invisible": 0 * edge,
    }[shape].clip(0, 255).astype(np.uint8)  # fmt: skip
    visible = picture if bands == 4 else picture[..., 1:2]
    found = decode("png", write(vips(np.dstack((visible, alpha))), "png", colors=colors))[0]
    assert not found[..., -1][alpha == 0].any()
    assert (found[..., -1][alpha == 255] == 255).all()
    assert photos.number_of_colors(found) <= colors
    if (alpha == 255).mean() > 0.05:
        error = np.abs(found[..., :-1].astype(int) - visible)[alpha == 255]
        assert error.mean() < {2: 70, 3: 90, 4: 50, 16: 30}.get(colors, 15)


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_not_visible_has_no_color(count: int) -> None:
    frames = np.zeros((count, 20, 30, 4), np.uint8)
    picture = vips(frames[0]) if count == 1 else strip(frames, [50] * count, 0)
    for colors in (None, 4):
        assert not shown_alpha(write(picture, "gif", colors=colors)).any()


def test_palettes_of_frames_that_keep_all_colors_need_no_note() -> None:
    scenes = [photos.coffee()[:90, :120], photos.astronaut()[:90, :120], photos.cat()[:90, :120]]
    images = [Image.fromarray(scene).quantize(200) for scene in scenes]
    source = pillow(images[0], "GIF", save_all=True, append_images=images[1:], duration=50)
    result = imgsvc.process(source)
    assert np.array_equal(shown(result.data), shown(source))
    assert result.notes == ()
    smaller = imgsvc.process(source, {"resize": {"width": 60}})
    assert smaller.notes == ("GIF has 256 colors for each frame, and the picture has more.",)


def test_notes_tell_of_fewer_colors() -> None:
    source = pillow(photos.coffee()[:90, :120], "PNG")
    note = "GIF has 256 colors for each frame, and the picture has more."
    assert imgsvc.process(source, {"output": {"format": "gif"}}).notes == (note,)
    for format in ("gif", "png"):
        result = imgsvc.process(source, {"output": {"format": format, "colors": 40}})
        assert result.notes == ("The colors are reduced to 40.",)


@given(st.integers(1, 4), st.integers(0, 3000), st.sampled_from([4, 40, 256]), st.integers(0, 2**32))
def test_every_pixel_is_counted(bands: int, pixels: int, levels: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    colors = random.integers(0, levels, (pixels, bands), np.uint8)
    histogram = Histogram.of(colors)
    unique, counts = np.unique(colors, axis=0, return_counts=True)
    assert histogram.counts.sum() == pixels
    found = histogram.colors[histogram.numbers(colors)]
    if histogram.exact:
        assert sorted(counts) == sorted(histogram.counts)
        assert np.array_equal(found, colors)
    elif pixels:
        assert np.abs(found - colors).max() < 8
    chosen = histogram.choose(16)
    assert len(chosen) == min(16, len(histogram.colors))
    assert histogram.error(chosen) >= 0
    if len(unique) <= 16 and histogram.exact:
        assert histogram.error(chosen) == 0
