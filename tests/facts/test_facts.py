"""Facts of pixels, against independent implementations of each."""

from __future__ import annotations

import base64
import io
import json
import pickle
from collections.abc import Iterator
from typing import Any

import blurhash
import imagehash
import numpy as np
import pytest
import thumbhash
from PIL import Image
from scipy.cluster import vq
from scipy.ndimage import laplace

import imgsvc_core as imgsvc
from imgsvc_core.spec.facts import FACTS, MOST_COLORS, MOST_LETTERS
from tests.support import encoded
from tests.support.handmade import pillow
from tests.support.photos import COLOR, GRAY, Pixels, cut_out, photo

ALL = list(FACTS)
PHOTOS = (*COLOR, *GRAY)


def facts_of(source: Any, **request: Any) -> Any:
    output = {"format": "png", "effort": 0, "facts": ALL}
    return imgsvc.process(source, {**request, "output": output}).output.facts


def blurhash_of(pixels: Pixels) -> str:
    across, down = (4, 3) if pixels.shape[1] >= pixels.shape[0] else (3, 4)
    told: str = blurhash.encode(pixels, across, down)
    return told


def reduced(name: str, side: int) -> Image.Image:
    """A photograph that is small enough for all of its pixels to count."""
    picture = Image.fromarray(photo(name))
    picture.thumbnail((side, side))
    return picture


@pytest.mark.parametrize("name", PHOTOS)
def test_blurhash_is_that_of_the_package(name: str) -> None:
    picture = reduced(name, 140)
    assert facts_of(picture)["blurhash"] == blurhash_of(np.asarray(picture.convert("RGB")))


@pytest.mark.parametrize("size", [(256, 70), (100, 160)])
def test_blurhash_averages_all_pixels_of_the_copy_in_light(size: tuple[int, int]) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8)
    told, expected = facts_of(noise)["blurhash"], blurhash_of(noise)
    assert told[2:6] == expected[2:6]  # the mean
    shown = [np.asarray(blurhash.decode(one, 16, 16)) for one in (told, expected)]
    assert np.abs(shown[0] - shown[1]).max() <= 2


@pytest.mark.parametrize("name", PHOTOS)
def test_blurhash_of_a_large_photo_is_that_of_the_package_for_the_averaged_photo(name: str) -> None:
    picture = Image.fromarray(photo(name)).convert("RGB")
    picture.thumbnail((260, 260))
    assert facts_of(picture)["blurhash"] == blurhash_of(np.asarray(picture.reduce(2)))


def test_blurhash_of_a_large_photo_is_close_to_that_of_all_its_pixels() -> None:
    picture = Image.fromarray(photo("coffee")).resize((480, 64))
    told, expected = facts_of(picture)["blurhash"], blurhash_of(np.asarray(picture))
    shown = [np.asarray(blurhash.decode(one, 16, 16)) for one in (told, expected)]
    assert np.abs(shown[0] - shown[1]).mean() <= 4


@pytest.mark.parametrize("size", [(1, 1), (1, 64), (64, 1), (32, 16)])
def test_blurhash_of_few_pixels_is_that_of_the_package_for_64_on_a_side(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8)
    repeated = pixels.repeat(64 // size[1], axis=0).repeat(64 // size[0], axis=1)
    across, down = (4, 3) if size[0] >= size[1] else (3, 4)
    assert facts_of(pixels)["blurhash"] == blurhash.encode(repeated, across, down)


@pytest.mark.parametrize("name", PHOTOS)
def test_thumbhash_is_that_of_the_package(name: str) -> None:
    picture = reduced(name, 96).convert("RGBA")
    told = base64.b64decode(facts_of(picture)["thumbhash"])
    assert told == bytes(thumbhash.rgba_to_thumb_hash(*picture.size, picture.tobytes()))


def test_thumbhash_of_a_transparent_picture_is_that_of_the_crate() -> None:
    told = facts_of(cut_out()[90:440:5, 20:480:5])["thumbhash"]
    assert told == "3ViKFIYteUo/qJqF+yZVf1FmYIKIN0d4Bg=="  # by the crate thumbhash; the package adds no alpha


@pytest.mark.parametrize("name", PHOTOS)
def test_perceptual_hash_is_that_of_the_package(name: str) -> None:
    picture = reduced(name, 120)
    assert facts_of(picture)["phash"] == str(imagehash.phash(picture))


@pytest.mark.parametrize("name", PHOTOS)
@pytest.mark.parametrize("size", [(256, 188), (480, 352), (1500, 1100)])
def test_perceptual_hash_of_a_large_picture_is_close_to_that_of_the_package(
    name: str, size: tuple[int, int]
) -> None:
    """The package looks at all pixels, imgsvc averages them before."""
    picture = Image.fromarray(photo(name)).resize(size)
    told = imagehash.hex_to_hash(facts_of(picture)["phash"])
    assert told - imagehash.phash(picture) <= 2


@pytest.mark.parametrize("name", PHOTOS)
def test_sharpness_is_the_variance_of_scipys_laplacian(name: str) -> None:
    picture = reduced(name, 384)
    luma = np.asarray(picture.convert("L"), np.float64)
    assert facts_of(picture)["sharpness"] == pytest.approx(laplace(luma, mode="nearest").var(), abs=0.02)


def test_blurring_takes_sharpness() -> None:
    values = [
        facts_of(photo("astronaut"), filter={"blur": {"mode": "gaussian", "value": value}})["sharpness"]
        for value in (1, 10, 40)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 20 < 300 < facts_of(photo("astronaut"))["sharpness"]


@pytest.mark.parametrize("name", COLOR)
def test_palette_is_as_good_as_that_of_k_means(name: str) -> None:
    """Each pixel is as near to a color of the palette as to one of SciPy's, with as many colors."""
    picture = reduced(name, 512)
    palette = facts_of(picture)["palette"]
    assert 1 < len(palette) <= MOST_COLORS
    points = oklab(np.asarray(picture).reshape(-1, 3)[::61])
    best = vq.kmeans(points, len(palette), seed=1)[0]
    ours = oklab(np.array([list(bytes.fromhex(item["color"][1:])) for item in palette]))
    distances = np.linalg.norm(points[:, None] - ours[None], axis=2)
    # Shares are counted in the same pixels: those of the nearest color.
    counted = np.bincount(distances.argmin(axis=1), minlength=len(palette)) / len(points)
    least = vq.vq(points, best)[1]
    assert (distances.min(axis=1) ** 2).sum() <= 1.18 * (least**2).sum()
    assert counted == pytest.approx([item["share"] for item in palette], abs=0.05)


def oklab(levels: Pixels) -> Pixels:
    """As https://bottosson.github.io/posts/oklab/ gives it in C++, one color after the other."""
    found = []
    for red, green, blue in levels / 255:
        r, g, b = (
            level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4
            for level in (red, green, blue)
        )
        long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
        middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
        short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
        found.append(
            (
                0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
                1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
                0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
            )
        )
    return np.array(found)


def test_palette_of_a_drawing_has_its_colors_exactly() -> None:
    pixels = np.zeros((300, 400, 3), np.uint8)
    pixels[:, :200] = 0xE6, 0x39, 0x46
    pixels[:, 200:280] = 0xF1, 0xFA, 0xEE
    pixels[:, 280:] = 0x1D, 0x35, 0x57
    told = facts_of(pixels)
    assert [item["color"] for item in told["palette"]] == ["#e63946", "#1d3557", "#f1faee"]
    assert [item["share"] for item in told["palette"]] == pytest.approx([0.5, 0.3, 0.2], abs=0.02)
    assert told["dominant"] == "#e63946"


def test_pixels_count_by_their_alpha_in_the_palette() -> None:
    pixels = np.zeros((40, 40, 4), np.uint8)
    pixels[:20] = 255, 0, 0, 255
    pixels[20:30] = 0, 0, 255, 128
    pixels[30:] = 0, 255, 0, 0
    palette = facts_of(pixels)["palette"]
    assert palette == [{"color": "#ff0000", "share": 0.799}, {"color": "#0000ff", "share": 0.201}]


@pytest.mark.parametrize("width", range(1, 9))
@pytest.mark.parametrize("turned", [False, True])
def test_palette_has_the_colors_of_stripes_of_any_width(width: int, turned: bool) -> None:
    colors = np.array([(200, 30, 30), (30, 30, 200)], np.uint8)
    lines = np.broadcast_to(colors[np.arange(240) // width % 2], (200, 240, 3))
    palette = facts_of(lines.transpose(1, 0, 2) if turned else lines)["palette"]
    assert {item["color"] for item in palette} == {"#c81e1e", "#1e1ec8"}
    assert [item["share"] for item in palette] == pytest.approx([0.5, 0.5], abs=0.03)


@pytest.mark.parametrize("side", [100, 300, 2000])
@pytest.mark.parametrize("opacity", [1, 3, 40, 128])
def test_translucent_pictures_keep_their_color(opacity: int, side: int) -> None:
    told = facts_of(Image.new("RGBA", (side, side), (200, 100, 50, opacity)))
    assert told["palette"] == [{"color": "#c86432", "share": 1.0}]
    assert facts_of(Image.new("RGBA", (side, side), (90, 94, 92, opacity)))["gray"] is True


@pytest.mark.parametrize("name", PHOTOS)
def test_placeholder_looks_like_the_picture(name: str) -> None:
    picture = reduced(name, 512)
    uri = facts_of(picture)["lqip"]
    assert len(uri) <= MOST_LETTERS
    tiny = Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/webp;base64,"))))
    assert max(tiny.size) >= 16
    expected = picture.convert("RGB").resize(tiny.size, Image.Resampling.BOX)
    assert np.abs(np.asarray(tiny, float) - np.asarray(expected, float)).mean() < 16


def test_noise_still_fits_into_a_placeholder() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (300, 300, 4), np.uint8)
    uri = facts_of(noise)["lqip"]
    assert len(uri) <= MOST_LETTERS
    assert Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).mode == "RGBA"


@pytest.mark.parametrize("size", [282, 284])
def test_a_placeholder_is_taken_up_to_282_bytes(size: int) -> None:
    """They are 376 characters, after 23 of the head. A WebP has an even number of bytes."""
    picture = next(one for one in noises() if len(first_try(one)) == size)
    told = facts_of(picture)["lqip"].partition(",")[2]
    assert (base64.b64decode(told) == first_try(picture)) == (size == 282)


def noises() -> Iterator[Image.Image]:
    random = np.random.default_rng(1)
    for _ in range(3000):
        spread = random.integers(10, 60)
        yield Image.fromarray(random.integers(128 - spread, 128 + spread, (24, 24, 3), np.uint8))


def first_try(picture: Image.Image) -> bytes:
    return pillow(picture, "WEBP", quality=40, method=4)


@pytest.mark.parametrize("name", PHOTOS)
def test_gray_pictures_are_told_from_colors(name: str) -> None:
    picture = Image.fromarray(photo(name))
    assert facts_of(picture)["gray"] is (name in GRAY)
    lossy = pillow(picture.convert("L").convert("RGB"), "WEBP", quality=30)
    assert facts_of(lossy)["gray"] is True


@pytest.mark.parametrize(("difference", "expected"), [(4, True), (5, False)])
@pytest.mark.parametrize("place", [0, 3])
def test_gray_allows_4_levels_between_channels(place: int, difference: int, expected: bool) -> None:
    pixels = np.full((20, 20, 3), 90, np.uint8)
    pixels[place, place, 1] += difference
    assert facts_of(pixels)["gray"] is expected


@pytest.mark.parametrize(("opacity", "expected"), [(0, True), (1, False)])
def test_gray_looks_at_no_invisible_pixel(opacity: int, expected: bool) -> None:
    pixels = np.full((20, 20, 4), 128, np.uint8)
    pixels[7, 9] = 255, 0, 0, opacity
    assert facts_of(pixels)["gray"] is expected


@pytest.mark.parametrize("name", ["astronaut", "camera"])
def test_facts_of_a_source_are_those_of_its_plain_result(name: str) -> None:
    assert imgsvc.inspect(photo(name), facts=ALL).facts == facts_of(photo(name))


KINDS = (
    "apng_deep avif_ten_bits bmp_palette bmp_sixteen_bits gif_disposals heic_alpha ico jp2_deep jpeg_cmyk "
    "jpeg_oriented png_deep_gray png_palette_alpha psd_lab svg tiff_cmyk tiff_float tiff_pyramid "
    "webp_animated"
)


@pytest.mark.parametrize("kind", KINDS.split())
def test_facts_of_files_are_those_of_their_results(kind: str) -> None:
    data = getattr(encoded, kind)().data
    assert imgsvc.inspect(data, facts=ALL).facts == facts_of(data)


@pytest.mark.parametrize("side", [2000, 4000])
def test_facts_of_a_large_source_are_close_to_those_of_its_pixels(side: int) -> None:
    """A large JPEG is decoded at a part of its size, but not at fewer pixels than facts look at."""
    picture = Image.fromarray(photo("astronaut")).resize((side, side), Image.Resampling.BICUBIC)
    file = pillow(picture, "JPEG", quality=90)
    told, all_pixels = imgsvc.inspect(file, facts=ALL).facts, facts_of(file)
    assert imagehash.hex_to_hash(told["phash"]) - imagehash.hex_to_hash(all_pixels["phash"]) <= 2
    assert told["sharpness"] == pytest.approx(all_pixels["sharpness"], rel=0.1)
    assert told["palette"][0]["share"] == pytest.approx(all_pixels["palette"][0]["share"], abs=0.03)


def test_facts_are_those_of_the_result_and_of_pixels_before_encoding() -> None:
    request = {"crop": {"mode": "rect", "x": 0, "y": 0, "width": 100, "height": 80}}
    source = photo("astronaut")
    for format in ("png", "jpg", "gif"):
        asked = {**request, "output": {"format": format, "facts": ALL}}
        assert imgsvc.process(source, asked).output.facts == facts_of(source[:80, :100].copy())


def test_facts_of_an_animation_are_those_of_its_first_frame() -> None:
    frames = [Image.new("RGB", (20, 20), color) for color in ("red", "blue", "lime")]
    file = pillow(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    asked = {"output": {"facts": ALL}}
    result = imgsvc.process(file, asked)
    assert result.output.frames == 3
    assert result.output.facts["palette"] == [{"color": "#ff0000", "share": 1.0}]
    assert imgsvc.inspect(file, facts=ALL).facts == result.output.facts


def test_facts_are_those_of_the_upright_picture() -> None:
    picture = Image.fromarray(photo("coffee"))
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = pillow(picture, "PNG", exif=exif)
    upright = picture.transpose(Image.Transpose.ROTATE_270)
    assert imgsvc.inspect(turned, facts=ALL).facts == facts_of(upright) == facts_of(turned)


def test_facts_of_16_bits_are_those_of_8() -> None:
    deep = photo("astronaut").astype(np.uint16) * 257
    assert facts_of(deep) == facts_of(photo("astronaut"))


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (1, 3000), (5000, 1)])
@pytest.mark.parametrize("color", [(200, 10, 10), (10, 200, 10, 128), (0, 0, 0, 0)])
def test_flat_pictures_of_any_shape_have_flat_facts(size: tuple[int, int], color: tuple[int, ...]) -> None:
    visible = len(color) == 3 or color[3] > 0
    told = facts_of(Image.new("RGBA" if len(color) == 4 else "RGB", size, color))
    assert [item["share"] for item in told["palette"]] == [1.0] * visible
    assert [told["dominant"]] == ([item["color"] for item in told["palette"]] or [None])
    if visible:  # alpha costs a level where pixels are averaged
        levels = bytes.fromhex(told["dominant"][1:])
        assert list(levels) == pytest.approx(color[:3], abs=2 if len(color) == 4 else 0)
    assert told["sharpness"] == 0
    assert told["gray"] is not visible
    assert told["phash"] == "8000000000000000"
    alpha = color[3] / 255 if len(color) == 4 else 1
    on_white = np.array(color[:3]) * alpha + 255 * (1 - alpha)
    shown = np.asarray(blurhash.decode(told["blurhash"], 8, 8))
    assert np.abs(shown - on_white).max() < 16
    average = thumbhash.thumb_hash_to_average_rgba(base64.b64decode(told["thumbhash"]))
    assert average[3] == pytest.approx(alpha, abs=0.04)


def test_the_background_lies_under_what_knows_no_transparency() -> None:
    clear = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    request = {"output": {"format": "png", "facts": ["blurhash"], "background": "00f"}}
    told = imgsvc.process(clear, request).output.facts["blurhash"]
    assert np.asarray(blurhash.decode(told, 4, 4)).mean(axis=(0, 1)) == pytest.approx((0, 0, 255), abs=12)


def test_facts_need_no_encoding() -> None:
    result = imgsvc.process(photo("cat"), {"output": {"facts": ALL}})
    facts = result.facts
    assert "not encoded yet" in repr(result)
    assert result.output.facts is facts
    assert pickle.loads(pickle.dumps(result)).facts == facts


def test_only_facts_that_were_asked_for_are_told() -> None:
    assert imgsvc.process(photo("cat")).output.facts == {}
    told = imgsvc.process(photo("cat"), {"output": {"facts": ["gray", "dominant", "gray"]}}).to_dict()
    assert list(told["output"]["facts"]) == ["dominant", "gray"]
    json.dumps(told)
    assert imgsvc.palette(photo("cat")) == imgsvc.inspect(photo("cat"), facts=["palette"]).facts["palette"]


@pytest.mark.parametrize("wrong", ["palette", ["colors"], [1], {"palette": True}, 3])
def test_wrong_names_are_refused(wrong: Any) -> None:
    with pytest.raises(imgsvc.SpecError) as refused:
        imgsvc.parse({"output": {"facts": wrong}})
    assert [problem.path for problem in refused.value.problems] == ["output.facts"]
    assert "array of words among blurhash, thumbhash" in str(refused.value)
    with pytest.raises(imgsvc.SpecError):
        imgsvc.inspect(photo("cat"), facts=wrong)


def test_facts_of_a_source_keep_the_limits() -> None:
    with pytest.raises(imgsvc.ImageTooLarge):
        imgsvc.inspect(photo("cat"), facts=ALL, limits=imgsvc.Limits(source_pixels=1000))
    with pytest.raises(imgsvc.MemoryLimitExceeded):
        imgsvc.inspect(photo("cat"), facts=ALL, limits=imgsvc.Limits(memory_bytes=1000))
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.inspect(pillow(photo("cat"), "PNG")[:-20000], facts=ALL)
