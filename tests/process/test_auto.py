"""The output format ``auto``: of what suits the picture, the best that there is room for."""

from __future__ import annotations

import io
from typing import Any

import attrs
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageSequence

import imgsvc_core as imgsvc
from imgsvc_core.formats.content import kind_of
from imgsvc_core.formats.settings import SaveSettings
from tests.support import photos
from tests.support.photos import as_vips, astronaut, cut_out

PHOTO = astronaut()[100:300, 100:340]


def _encoded(source: Any, format: str, **output: Any) -> imgsvc.Result:
    return imgsvc.process(source, {"output": {"format": format, **output}})


def _size(source: Any, format: str, **output: Any) -> int:
    return len(_encoded(source, format, **output).data or b"")


def _pixels(result: imgsvc.Result, like: photos.Pixels) -> photos.Pixels:
    """Return the pixels of a result in the channels of others."""
    return np.asarray(result.to_pil().convert("L" if like.ndim == 2 else ("RGB", "RGBA")[like.shape[2] - 3]))


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


@pytest.mark.parametrize("height", [1, 2, 3])
def test_lines_that_only_png_holds_are_looked_at_too(height: int) -> None:
    """Of a wide picture few lines are looked at, and of one line that one."""
    line = np.tile(np.arange(256, dtype=np.uint8), 400)[:60_000]
    pixels = np.stack([np.stack([line, line[::-1], line], axis=1)] * height)
    result = imgsvc.process(pixels, {"output": {"format": "auto"}}, limits=imgsvc.Limits.none())
    assert (result.output.format, result.output.width, result.output.height) == ("png", 60_000, height)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("height", [1, 2, 50, 5_000])
def test_a_graphic_one_pixel_wide_stays_exact(height: int) -> None:
    colors = np.array([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)], np.uint8)
    column = colors[np.arange(height) * 7 // 40 % 4][:, np.newaxis]
    result = _encoded(column, "auto")
    assert np.array_equal(_pixels(result, column), column)
    assert len(result.data or b"") <= min(_size(column, "png"), _size(column, "webp", lossless=True))


@pytest.mark.parametrize(("source", "formats"), [(cut_out(), ["webp"]), (PHOTO, ["webp", "jpg"])])
def test_it_is_an_error_where_nothing_fits(source: photos.Pixels, formats: list[str]) -> None:
    smallest = min(_size(source, format, quality=1) for format in formats)
    with pytest.raises(imgsvc.BudgetUnreachable, match=f"the smallest it gets is {smallest} bytes"):
        assert _encoded(source, "auto", max_bytes=smallest - 1).data


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
    tile[..., 3] |= 1  # colors that nobody sees are not kept
    pattern = np.tile(tile, (8, 8, 1))
    room = _size(pattern, "webp") - 1
    lowered = _encoded(pattern, "webp", max_bytes=room)
    assert (lowered.output.quality or 0) < 80
    result = _encoded(pattern, "auto", max_bytes=room)
    assert np.array_equal(_pixels(result, pattern), pattern)
    assert result.data == _encoded(pattern, "webp", lossless=True).data


def test_a_side_that_one_format_cannot_hold_leaves_the_other() -> None:
    longest = np.zeros((1, 16_384, 3), np.uint8)
    with pytest.raises(imgsvc.OutputTooLarge):
        assert _encoded(longest, "webp").data
    assert _encoded(longest, "auto").output.format == "png"
    with pytest.raises(imgsvc.OutputTooLarge):  # also where pixels stay in an array from decoder to encoder
        assert _encoded(_encoded(longest, "png").data, "webp").data


def test_lossless_asks_only_formats_that_are() -> None:
    result = _encoded(PHOTO, "auto", lossless=True)
    again = imgsvc.process(result.data, {"output": {"format": "png"}})
    assert again.data == _encoded(PHOTO, "png").data


def pixel_art() -> photos.Pixels:
    random = np.random.default_rng(1)
    colors = random.integers(0, 256, (12, 3), np.uint8)
    return np.kron(colors[random.integers(0, 12, (24, 24))], np.ones((10, 10, 1), np.uint8))


def sprite() -> photos.Pixels:
    half = np.random.default_rng(2).integers(0, 4, (24, 12))
    colors = np.array([(0, 0, 0, 0), (30, 30, 60, 255), (200, 60, 60, 255), (250, 220, 180, 128)], np.uint8)
    return np.kron(colors[np.hstack([half, half[:, ::-1]])], np.ones((5, 5, 1), np.uint8))


def text(mode: str = "RGB") -> photos.Pixels:
    page = Image.new("RGB", (500, 300), "white")
    draw = ImageDraw.Draw(page)
    for top in range(8, 290, 18):
        draw.text((8, top), f"The ferry will leave at noon before the tide turns east, {top}", "black")
    return np.asarray(page.convert(mode)).copy()


def shades() -> photos.Pixels:
    row, column = np.mgrid[:200, :300]
    return np.stack([column * 255 // 299, row * 255 // 199, 0 * row + 90], axis=-1).astype(np.uint8)


def screenshot() -> photos.Pixels:
    """Text in colors, a soft button, and a photograph."""
    window = Image.new("RGB", (640, 400), (245, 246, 248))
    draw = ImageDraw.Draw(window)
    for line in range(18):
        draw.text((12, 10 + 21 * line), "for index in range(4096): print(index)", (40 * (line % 5), 20, 120))
    for inset in range(12):
        shade = 245 - 4 * inset
        draw.rounded_rectangle((420 + inset, 20 + inset, 620 - inset, 90 - inset), 20, (shade, shade, 250))
    window.paste(Image.fromarray(photos.coffee()[100:200, 100:300]), (420, 120))
    return np.asarray(window).copy()


def dithered() -> photos.Pixels:
    return np.asarray(Image.fromarray(photos.coffee()).quantize(64).convert("RGB")).copy()


GRAPHICS = {"pixel art": pixel_art, "sprite": sprite, "text": text, "gray text": lambda: text("L")}
OTHERS = {
    "shades": shades, "screenshot": screenshot, "dithered": dithered, "photograph": lambda: PHOTO,
    "gray photograph": photos.camera, "cut out": cut_out, "cat": photos.cat,
}  # fmt: skip


def _by_hand(pixels: photos.Pixels, formats: list[dict[str, Any]]) -> list[bytes]:
    return [imgsvc.process(pixels, {"output": output}).data or b"" for output in formats]


@pytest.mark.parametrize("name", GRAPHICS | OTHERS)
def test_it_is_the_smallest_of_what_one_would_get_by_hand(name: str) -> None:
    pixels = (GRAPHICS | OTHERS)[name]()
    formats: list[dict[str, Any]] = [
        {"format": "webp"},
        {"format": "webp", "lossless": True},
        {"format": "png"},
    ]
    if pixels.ndim == 2 or pixels.shape[2] == 3:
        formats.append({"format": "jpg"})
    result = _encoded(pixels, "auto")
    assert result.output.bytes == min(map(len, _by_hand(pixels, formats)))


@pytest.mark.parametrize(
    "accept", [None, "image/avif,image/webp,image/*", "image/webp,*/*", "*/*", "image/png"]
)
@pytest.mark.parametrize("name", GRAPHICS)
def test_graphics_stay_exact(name: str, accept: str | None) -> None:
    pixels = GRAPHICS[name]()
    result = imgsvc.process(pixels, {"output": {"format": "auto"}}, accept=accept)
    assert np.array_equal(_pixels(result, pixels), pixels)
    modern = accept is None or "webp" in accept
    assert result.output.format == ("webp" if modern else "png")


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        (None, "webp"),
        ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", "avif"),
        ("image/webp,*/*", "webp"),
        ("*/*", "jpg"),
        ("image/webp;q=0.5,image/jpeg", "jpg"),
    ],
)
def test_photographs_become_what_is_accepted(accept: str | None, format: str) -> None:
    result = imgsvc.process(PHOTO, {"output": {"format": "auto"}}, accept=accept)
    assert result.data == _encoded(PHOTO, format).data


def test_a_client_that_shows_only_avif_gets_graphics_exactly() -> None:
    result = imgsvc.process(pixel_art(), {"output": {"format": "auto"}}, accept="image/avif")
    assert result.output.format == "avif"
    assert np.array_equal(_pixels(result, pixel_art()), pixel_art())


@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat", "rocket", "camera", "cut_out"])
@pytest.mark.parametrize("side", [100, 300, 600])
def test_photographs_are_not_encoded_exactly(name: str, side: int) -> None:
    image = as_vips(getattr(photos, name)()).thumbnail_image(side)
    assert kind_of(image, SaveSettings(format="webp")) == "photograph"


def test_a_jpeg_with_half_of_its_color_is_not_even_examined() -> None:
    jpeg = _encoded(PHOTO, "jpg").data or b""
    assert imgsvc.explain({"output": {"format": "auto"}}, imgsvc.inspect(jpeg)).save_exactly == ()


def test_the_plan_tells_both_ways() -> None:
    plan = imgsvc.explain({"output": {"format": "auto"}}, imgsvc.inspect(_encoded(pixel_art(), "png").data))
    assert "whichever is smaller; graphics WebP, lossless or PNG" in str(plan)
    assert plan.to_dict()["output"]["formats"] == ["webp", "jpg", "png"]


def moving_art() -> bytes:
    frames = [Image.fromarray(np.roll(pixel_art(), 20 * step, axis=0)) for step in range(4)]
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:], duration=60)
    return file.getvalue()


def test_animations_of_few_colors_stay_exact() -> None:
    result = _encoded(moving_art(), "auto")
    assert (result.output.format, result.output.frames) == ("webp", 4)
    for number, frame in enumerate(ImageSequence.Iterator(Image.open(io.BytesIO(result.data or b"")))):
        assert np.array_equal(np.asarray(frame.convert("RGB")), np.roll(pixel_art(), 20 * number, axis=0))


@pytest.mark.parametrize(
    ("accept", "formats"),
    [("image/webp,image/apng", ["webp", "apng"]), ("image/apng", ["apng"]), ("image/webp", ["webp"])],
)
def test_animated_graphics_are_kept_in_each_format_that_is_accepted(accept: str, formats: list[str]) -> None:
    result = imgsvc.process(moving_art(), {"output": {"format": "auto"}}, accept=accept)
    assert result.plan is not None
    assert [settings.format for settings in result.plan.save_exactly] == formats
    assert result.output.frames == 4


def test_all_frames_count_for_what_is_too_large_to_be_examined() -> None:
    info = attrs.evolve(imgsvc.inspect(moving_art()), width=4000, height=1000)
    for frames, examined in ((4, True), (5, False)):
        plan = imgsvc.explain({"output": {"format": "auto"}}, attrs.evolve(info, frames=frames))
        assert bool(plan.save_exactly) is examined


@pytest.mark.parametrize("output", [{"format": "auto"}, {"format": "webp", "lossless": True}])
def test_a_quality_is_for_photographs(output: dict[str, Any]) -> None:
    """libwebp takes that of a picture without loss for effort."""
    assert _encoded(text(), **output, quality=10).data == _encoded(text(), **output).data
