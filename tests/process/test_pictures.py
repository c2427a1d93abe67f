"""What happens to animations, depth, color spaces and alpha on the whole way."""

from __future__ import annotations

import io
from typing import Any

import attrs
import numpy as np
import pytest
import pyvips
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from imgsvc_core.sources import opening
from imgsvc_core.sources.opening import Opened
from tests.process.pictures import pixels_of
from tests.support import encoded
from tests.support.perceptual import distance
from tests.support.photos import as_vips, astronaut, coffee, deep, moving_frames


def _process(source: Any, request: dict[str, Any], format: str = "png") -> pyvips.Image:
    data = imgsvc.process(source, {**request, "output": {"format": format, **request.get("output", {})}}).data
    return pyvips.Image.new_from_buffer(data, "n=-1" if format in ("gif", "webp") else "")


@pytest.mark.parametrize("make", [encoded.gif_animated, encoded.webp_animated, encoded.apng])
@pytest.mark.parametrize("format", ["gif", "webp", "apng"])
def test_animations_keep_frames_delays_and_plays(make: Any, format: str) -> None:
    source = make().data
    before = imgsvc.inspect(source)
    request = {"resize": {"width": 40}, "adjust": {"contrast": 20}, "output": {"format": format}}
    result = imgsvc.process(source, request)
    after = imgsvc.inspect(result.data)
    assert (after.frames, after.plays) == (before.frames, before.plays)
    assert after.width == 40
    if format == "gif":
        assert np.abs(np.cumsum(after.delays) - np.cumsum(before.delays)).max() <= 5
    else:
        assert after.delays == before.delays


def test_no_frame_bleeds_into_the_next() -> None:
    black, white = np.zeros((40, 60, 3), np.uint8), np.full((40, 60, 3), 255, np.uint8)
    data = io.BytesIO()
    frames = [Image.fromarray(frame) for frame in (black, white, black)]
    frames[0].save(data, "WEBP", save_all=True, append_images=frames[1:], duration=50, lossless=True)
    requests = [
        {"resize": {"width": 23}},
        {"filter": {"blur": {"mode": "gaussian", "value": 60}}},
        {"filter": {"blur": {"mode": "motion", "value": 100}}},
        {"adjust": {"sharpen": 100, "unsharp": 100}},
    ]
    for request in requests:
        strip = _process(data.getvalue(), {**request, "output": {"lossless": True}}, "webp")
        height = strip.get_page_height()
        means = [
            strip.crop(0, top, strip.width, height)[:3].stats() for top in range(0, strip.height, height)
        ]
        assert [(int(found(0, 0)[0]), int(found(1, 0)[0])) for found in means] == [(0, 0), (255, 255), (0, 0)]


def test_a_still_format_takes_the_first_frame() -> None:
    result = imgsvc.process(encoded.gif_animated().data, {"output": {"format": "png"}})
    assert result.output.frames == 1
    first = pyvips.Image.gifload_buffer(encoded.gif_animated().data)
    assert np.array_equal(pixels_of(result.data or b"")[..., :3], first.numpy()[..., :3])


def test_the_interesting_region_is_the_same_in_every_frame() -> None:
    frames = [Image.fromarray(frame) for frame in moving_frames(4, 120, 80)]
    data = io.BytesIO()
    frames[0].save(
        data, "WEBP", save_all=True, append_images=[frames[0].copy(), *frames[1:]], duration=50, lossless=True
    )
    strip = _process(
        data.getvalue(),
        {"crop": {"mode": "smart", "width": 50, "height": 50}, "output": {"lossless": True}},
        "webp",
    )
    assert (strip.width, strip.get_page_height()) == (50, 50)


@pytest.mark.parametrize("format", ["png", "tiff"])
def test_sixteen_bits_stay_sixteen_bits(format: str) -> None:
    source = as_vips(deep(coffee())).pngsave_buffer()
    request = {"resize": {"width": 100}, "adjust": {"exposure": 10, "vibrance": 20, "sharpen": 20}}
    found = _process(source, request, format)
    assert found.format == "ushort"
    assert len(np.unique(found.numpy() & 255)) > 200
    coarse = _process(as_vips(coffee()).pngsave_buffer(), request)
    assert np.abs(found.numpy() / 257 - coarse.numpy()).mean() < 1


def test_a_profile_is_honoured() -> None:
    wide = encoded.profile()
    source = Image.fromarray(coffee())
    data = io.BytesIO()
    source.save(data, "PNG", icc_profile=wide)
    expected = ImageCms.profileToProfile(
        source,
        ImageCms.ImageCmsProfile(io.BytesIO(wide)),
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    found = _process(data.getvalue(), {})
    assert np.abs(found.numpy().astype(int) - np.asarray(expected)).max() <= 2
    assert found.get_typeof("icc-profile-data")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (encoded.jpeg_cmyk, encoded.printed),
        (encoded.tiff_cmyk, encoded.printed),
        (encoded.tiff_lab, encoded.photo),
    ],
)
def test_other_color_spaces_become_srgb(make: Any, expected: Any) -> None:
    found = _process(make().data, {"adjust": {"brightness": 1}})
    assert found.interpretation == "srgb"
    assert found.bands == 3
    assert distance(found, expected()) < 0.03


@pytest.mark.parametrize("profile", [encoded.profile(), ImageCms.createProfile("sRGB"), None])
@pytest.mark.parametrize(
    "space", ["lab", "labs", "labq", "scrgb", "xyz", "hsv", "lch", "yxy", "cmc", "oklab", "oklch"]
)
def test_a_profile_of_rgb_says_nothing_about_other_spaces(space: str, profile: Any) -> None:
    image = as_vips(coffee()).colourspace(space)
    if profile is not None:
        icc = profile if isinstance(profile, bytes) else ImageCms.ImageCmsProfile(profile).tobytes()
        image.set_type(pyvips.GValue.blob_type, "icc-profile-data", icc)
    sources = [image, image.tiffsave_buffer()] if space in ("lab", "labs") else [image]
    for source in sources:
        found = _process(source, {"resize": {"width": 200}})
        assert found.interpretation == "srgb"
        assert not found.get_typeof("icc-profile-data")
        assert np.abs(found.numpy().mean(axis=(0, 1)) - coffee().mean(axis=(0, 1))).max() < 2.5


def test_gray_stays_gray() -> None:
    found = _process(
        encoded.jpeg_gray().data, {"resize": {"width": 50}, "adjust": {"saturation": 50, "contrast": 10}}
    )
    assert found.bands == 1
    assert _process(encoded.jpeg_gray().data, {"filter": {"sepia": {"value": 50}}}).bands == 3


def test_transparent_pixels_lie_on_the_background() -> None:
    red = np.zeros((30, 30, 4), np.uint8)
    red[8:22, 8:22] = (255, 0, 0, 255)
    white = pixels_of(imgsvc.process(red, {"output": {"format": "jpg", "quality": 100}}).data or b"")
    blue = pixels_of(
        imgsvc.process(red, {"output": {"format": "jpg", "quality": 100, "background": "00F"}}).data or b""
    )
    assert np.abs(white[0, 0].astype(int) - (255, 255, 255)).max() <= 2
    assert np.abs(blue[0, 0].astype(int) - (0, 0, 255)).max() <= 4
    assert np.abs(white[15, 15].astype(int) - (255, 0, 0)).max() <= 4


def test_transparency_that_the_header_does_not_tell_lies_on_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def open_source(*args: Any, **options: Any) -> Opened:
        opened = opening.open_source(*args, **options)
        return attrs.evolve(opened, info=attrs.evolve(opened.info, alpha=False))

    monkeypatch.setattr("imgsvc_core.making.open_source", open_source)
    requests = {
        name: {"resize": {"width": width}, "output": {"format": "jpg", "background": "00F"}}
        for name, width in (("small", 20), ("large", 30))
    }
    for result in imgsvc.process_variants(np.zeros((30, 30, 4), np.uint8), requests).values():
        assert result.input.alpha
        assert np.abs(pixels_of(result.data)[0, 0].astype(int) - (0, 0, 255)).max() <= 4


def test_resizing_leaves_no_dark_fringe_around_transparency() -> None:
    picture = np.zeros((90, 90, 4), np.uint8)
    picture[20:70, 20:70] = (250, 200, 50, 255)
    small = pixels_of(imgsvc.process(picture, {"resize": {"width": 31}}).data or b"").astype(int)
    fringe = np.abs(small[..., :3] - (250, 200, 50)) * small[..., 3:] / 255
    assert fringe.max() <= 2
    assert np.array_equal(small[15, 15], (250, 200, 50, 255))


@pytest.mark.parametrize("side", [64, 200, 256, 300])
@pytest.mark.parametrize("frames", [1, 3])
def test_flat_and_opaque_pictures_stay_so_however_small_they_become(side: int, frames: int) -> None:
    flat = np.full((frames * side, side, 4), (200, 100, 50, 255), np.uint8)
    source = pyvips.Image.new_from_array(flat).copy(interpretation="srgb")
    source.set_type(pyvips.GValue.gint_type, "page-height", side)
    source.set_type(pyvips.GValue.gint_type, "n-pages", frames)
    png: bytes = source.crop(0, 0, side, side).pngsave_buffer()
    for width in (*range(1, 32), *range(33, side, 19)):
        lossless = {"format": "webp", "lossless": True} if frames > 1 else {"format": "png"}
        request = {"resize": {"width": width}, "output": lossless}
        made = imgsvc.process(source if frames > 1 else png, request)
        assert made.output.frames == frames
        result = pyvips.Image.new_from_buffer(made.data, "").numpy()
        assert (result == [200, 100, 50, 255][: result.shape[2]]).all()


@pytest.mark.parametrize("width", [23, 90, 299])
def test_resized_colors_are_weighted_by_alpha(width: int) -> None:
    """Smooth colors and alpha, with another color hidden. The oracle is Pillow on floats, band by band."""
    y, x = np.mgrid[0:400, 0:600]
    colors = np.dstack([np.sin(x / 60) ** 2, np.cos(y / 70) ** 2, np.sin((x + y) / 80) ** 2])
    alpha = np.clip(1.5 - np.hypot(x - 300, y - 200) / 150, 0, 1)
    picture = np.dstack([colors, alpha])
    picture[alpha == 0, :3] = 1, 0, 1
    found = (
        pixels_of(imgsvc.process((picture * 255).astype(np.uint8), {"resize": {"width": width}}).data or b"")
        / 255
    )
    weighted = [colors[..., band] * alpha for band in range(3)]
    small = [
        np.asarray(
            Image.fromarray(band.astype(np.float32)).resize(found.shape[1::-1], Image.Resampling.LANCZOS)
        )
        for band in (*weighted, alpha)
    ]
    expected, expected_alpha = np.clip(np.dstack(small[:3]), 0, 1), np.clip(small[3], 0, 1)
    for background in (0, 1):
        shown = found[..., :3] * found[..., 3:] + background * (1 - found[..., 3:])
        wanted = expected + background * (1 - expected_alpha[..., None])
        off = 255 * np.abs(shown - wanted)
        assert off.max() < 3.5
        assert off.mean() < 0.7


def test_automatic_formats() -> None:
    request = {"output": {"format": "auto"}}
    photo = as_vips(astronaut()).jpegsave_buffer()
    assert imgsvc.process(photo, request, accept="image/avif,image/webp,*/*").output.format == "avif"
    assert imgsvc.process(photo, request, accept="image/webp,*/*;q=0.8").output.format == "webp"
    assert imgsvc.process(photo, request, accept="image/png").output.format == "png"
    assert imgsvc.process(photo, request, accept="image/avif;q=0,image/png").output.format == "png"
    both = [len(imgsvc.process(photo, {"output": {"format": name}}).data or b"") for name in ("webp", "jpg")]
    assert imgsvc.process(photo, request).output.bytes == min(both)


def test_enlarging_can_be_forbidden() -> None:
    small = coffee()[:40, :60]
    held = imgsvc.process(small, {"resize": {"width": 600, "upscale": False}}).output
    free = imgsvc.process(small, {"resize": {"width": 600}}).output
    assert (held.width, held.height, free.width, free.height) == (60, 40, 600, 400)


def test_vector_pictures_are_drawn_at_the_size_asked_for() -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><path d="M0 10 10 0V10Z"/></svg>'
    large = _process(svg, {"resize": {"width": 400}}).numpy()
    assert large.shape == (400, 400, 4)
    soft = ((large[..., 3] > 0) & (large[..., 3] < 255)).sum()
    assert soft < 400 * 4


def test_faces_steer_crops() -> None:
    portrait = np.concatenate([np.full((512, 700, 3), 120, np.uint8), astronaut()], axis=1)
    request = {"resize": {"width": 150, "height": 256, "mode": "fit", "gravity": "face"}}
    result = imgsvc.process(portrait, request)
    assert result.faces is not None
    (face,) = result.faces
    assert 0 <= face.left < face.left + face.width <= 150
    assert abs(face.left + face.width / 2 - 75) < 15
    cropped = imgsvc.process(portrait, {"crop": {"mode": "face", "padding": 0.2}})
    assert 110 < cropped.output.width < 170
    nobody = imgsvc.process(coffee(), {**request, "output": {"format": "png"}})
    centered = imgsvc.process(
        coffee(), {"resize": {"width": 150, "height": 256, "mode": "fit"}, "output": {"format": "png"}}
    )
    assert nobody.faces == ()
    assert nobody.data == centered.data


@pytest.mark.parametrize(("width", "height"), [(101, 67), (333, 211), (97, 301), (256, 256)])
def test_jpeg_2000_of_any_size_is_decoded_small(width: int, height: int) -> None:
    source = as_vips(astronaut()).thumbnail_image(width, height=height, size="force")
    data = imgsvc.process(source, {"output": {"format": "jp2", "quality": 95}}).data
    for target in (width // 2, width // 3, width // 5, width // 7):
        found = _process(data, {"resize": {"width": target}})
        expected = source.resize(target / width, vscale=found.height / height)
        assert found.width == target
        assert np.abs(found.numpy().astype(int) - expected.numpy()).mean() < 9
