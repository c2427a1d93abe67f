"""Pictures in other RGB spaces look the same in the result, and HDR is tone-mapped."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from tests.formats.test_rgb_spaces import cicp, gama, heif, nclx
from tests.support import requires
from tests.support.handmade import ApngFrame, apng_by_hand, png_with
from tests.support.photos import Pixels, as_pixels, as_vips, astronaut, camera, coffee, disc_alpha

SRGB = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
P3 = np.array([[0.4866, 0.2657, 0.1982], [0.2290, 0.6917, 0.0793], [0.0, 0.0451, 1.0439]])
WIDE = np.array([[0.6370, 0.1446, 0.1689], [0.2627, 0.6780, 0.0593], [0.0, 0.0281, 1.0610]])
LUMINANCE = np.array([0.2627, 0.6780, 0.0593])


def decode(x: Any) -> Any:
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def encode(light: Any) -> Any:
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def pq(luminance: Any) -> Any:
    power = (luminance / 10_000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375


def pq_decoded(signal: Any) -> Any:
    power = signal ** (1 / 78.84375)
    return 10_000 * (np.maximum(power - 0.8359375, 0) / (18.8515625 - 18.6875 * power)) ** (
        1 / 0.1593017578125
    )


def hlg(display: Any) -> Any:
    """The signal of a display's light, 1 being 1000 cd/m2."""
    luminance = np.maximum(display @ LUMINANCE, 1e-9)[..., None]
    scene = display * luminance ** (1 / 1.2 - 1)
    return np.where(
        scene <= 1 / 12,
        np.sqrt(3 * scene),
        0.17883277 * np.log(np.maximum(12 * scene - 0.28466892, 1e-9)) + 0.55991073,
    )


def eetf(luminance: Any, peak: float) -> Any:
    """Report ITU-R BT.2390-11, section 5.4.1, for black at 0, to a peak of 203 cd/m2."""
    e1, largest = pq(luminance) / pq(peak), pq(203.0) / pq(peak)
    start = 1.5 * largest - 0.5
    t = (e1 - start) / (1 - start)
    p = (
        (2 * t**3 - 3 * t**2 + 1) * start
        + (t**3 - 2 * t**2 + t) * (1 - start)
        + (3 * t**2 - 2 * t**3) * largest
    )
    return pq_decoded(np.where(e1 < start, e1, p) * pq(peak))


def bright_scene(picture: Pixels) -> Any:
    """Light of BT.2020 in cd/m2 up to 1000, made of a photograph with highlights that are brighter."""
    light = decode(picture / 255) @ (np.linalg.inv(WIDE) @ SRGB).T
    return np.minimum(np.maximum(light, 0) * (1 + 4 * light.max(axis=2, keepdims=True) ** 3) * 203, 1000)


def tone_mapped(scene: Any, peak: float = 1000) -> Any:
    brightest = np.maximum(scene.max(axis=2, keepdims=True), 1e-6)
    light = scene * eetf(np.minimum(brightest, peak), peak) / brightest / 203
    return 255 * encode(light @ (np.linalg.inv(SRGB) @ WIDE).T)


def deep(signal: Any) -> Pixels:
    return np.rint(np.clip(signal, 0, 1) * 65535).astype(np.uint16)


def processed(data: bytes, request: dict[str, Any] | None = None) -> Any:
    """The result as floats up to 255."""
    result = imgsvc.process(data, {"output": {"format": "png"}, **(request or {})}).data
    pixels = as_pixels(pyvips.Image.new_from_buffer(result, ""))
    return pixels / (257 if pixels.dtype == np.uint16 else 1)


@pytest.mark.parametrize("bits", [8, 16])
def test_display_p3_is_not_dull(bits: int) -> None:
    signal = encode(decode(coffee() / 255) @ (np.linalg.inv(P3) @ SRGB).T)
    stored = deep(signal) if bits == 16 else np.rint(signal * 255).astype(np.uint8)
    found = processed(png_with(stored, cicp(12, 13)))
    assert np.abs(found - coffee()).max() < (0.2 if bits == 16 else 2.5)
    assert np.abs(stored / (257 if bits == 16 else 1) - coffee()).mean() > 5


@pytest.mark.parametrize("format", ["AVIF", "HEIF"])
def test_display_p3_of_heic_and_avif(format: str) -> None:
    stored = heif(format)
    plain = processed(nclx(stored, 1, 13))
    expected = 255 * encode(decode(plain / 255) @ (np.linalg.inv(SRGB) @ P3).T)
    assert np.abs(processed(nclx(stored, 12, 13)) - expected).max() < 0.6


# The inverse of each curve of Recommendation ITU-R H.273, table 3. The curves of cameras mean that of sRGB.
CURVES = {
    **dict.fromkeys((1, 2, 6, 7, 11, 12, 13, 14, 15), decode),
    4: lambda x: x**2.2,
    5: lambda x: x**2.8,
    8: lambda x: x,
    9: lambda x: np.where(x > 0, 10 ** (2 * (x - 1)), 0),
    10: lambda x: np.where(x > 0, 10 ** (2.5 * (x - 1)), 0),
    17: lambda x: 52.37 / 48 * x**2.6,
}


@pytest.mark.parametrize("code", CURVES)
@pytest.mark.parametrize("bits", [8, 16])
def test_every_curve(code: int, bits: int) -> None:
    picture = coffee()[::3, ::3]
    stored = picture if bits == 8 else deep(picture / 255)
    found = processed(png_with(stored, cicp(1, code)))
    assert np.abs(found - 255 * encode(CURVES[code](picture / 255))).max() < (0.51 if bits == 8 else 0.15)


@pytest.mark.parametrize("picture", [coffee, astronaut])
def test_pq_is_tone_mapped(picture: Any) -> None:
    scene = bright_scene(picture())
    found = processed(png_with(deep(pq(scene)), cicp(9, 16)))
    assert np.abs(found - tone_mapped(scene)).max() < 0.5


@pytest.mark.parametrize("picture", [coffee, astronaut])
def test_hlg_is_tone_mapped(picture: Any) -> None:
    scene = bright_scene(picture()) * 0.9  # HLG has no signal for blue of 1000 cd/m2
    found = processed(png_with(deep(hlg(scene / 1000)), cicp(9, 18)))
    assert np.abs(found - tone_mapped(scene)).max() < 0.5


def test_the_stated_light_level_is_the_peak() -> None:
    scene = bright_scene(coffee()) * 4
    chunks = cicp(9, 16), (b"cLLI", struct.pack(">2I", 40_000_000, 0))
    found = processed(png_with(deep(pq(scene)), *chunks))
    assert np.abs(found - tone_mapped(scene, 4000)).max() < 0.5


def test_hdr_of_avif() -> None:
    stored = heif("AVIF")
    scene = pq_decoded(processed(nclx(stored, 1, 13)) / 255)
    assert np.abs(processed(nclx(stored, 9, 16)) - tone_mapped(np.minimum(scene, 1000))).max() < 1


@pytest.mark.parametrize("bits", [8, 16])
def test_gray_with_a_gamma(bits: int) -> None:
    stored = camera() if bits == 8 else deep(camera() / 255)
    found = processed(png_with(stored, gama(100_000)))
    assert found.ndim == 2
    assert np.abs(found - 255 * encode(camera() / 255)).max() < 0.51


def test_alpha_stays() -> None:
    alpha = disc_alpha(600, 400)
    found = processed(png_with(np.dstack([coffee(), alpha]), cicp(12, 13)))
    assert np.array_equal(found[..., 3], alpha)


def test_every_frame_of_an_animation() -> None:
    frames = [np.ascontiguousarray(coffee()[:40, :60]), np.ascontiguousarray(coffee()[200:240, :60])]
    plain = apng_by_hand([ApngFrame(pixels=frame) for frame in frames])
    header = 8 + 25
    chunk = png_with(frames[0], gama(100_000))[header : header + 16]
    for index, frame in enumerate(frames):
        data = imgsvc.process(plain[:header] + chunk + plain[header:], {"output": {"format": "apng"}}).data
        with Image.open(io.BytesIO(data or b"")) as picture:
            picture.seek(index)
            found = np.asarray(picture.convert("RGB")).astype(float)
        assert np.abs(found - 255 * encode(frame / 255)).max() < 0.51


def test_the_result_states_nothing_and_stays_as_it_is() -> None:
    data = imgsvc.process(png_with(coffee(), cicp(12, 13)), {"output": {"format": "png"}}).data or b""
    assert imgsvc.inspect(data).rgb_space is None
    assert np.array_equal(processed(data), as_pixels(pyvips.Image.new_from_buffer(data, "")))


def test_the_plan_says_so() -> None:
    info = imgsvc.inspect(png_with(deep(coffee() / 255), cicp(9, 16)))
    (step,) = (step for step in imgsvc.explain({}, info).to_dict()["steps"] if "sRGB" in step["text"])
    assert step["text"] == "convert to sRGB, HDR tone-mapped"
    assert info.to_dict()["rgb_space"]["transfer"] == "pq"


def test_faces_are_looked_for_in_srgb() -> None:
    requires.module("cv2")
    signal = deep(decode(astronaut() / 255) ** 8)  # black for who takes it for sRGB
    request = {"crop": {"mode": "face"}, "output": {"format": "png"}}
    assert imgsvc.process(png_with(signal), request).faces == ()
    assert len(imgsvc.process(png_with(signal, gama(800_000)), request).faces or ()) == 1


def test_the_base_of_a_picture_with_a_gain_map() -> None:
    base, gain_map = (as_vips(pixels).jpegsave_buffer(Q=90) for pixels in (coffee(), camera()))
    words = b"http://ns.adobe.com/xap/1.0/\0" + b'<x:xmpmeta hdrgm:Version="1.0"/>'
    index = b"MPF\0MM\0*\0\0\0\x08" + bytes(6)
    segments = b"".join(
        b"\xff" + kind + struct.pack(">H", len(body) + 2) + body
        for kind, body in ((b"\xe1", words), (b"\xe2", index))
    )
    data = base[:2] + segments + base[2:] + gain_map
    assert np.array_equal(processed(data), processed(base))
    result = imgsvc.process(data, {"output": {"format": "jpg"}}).data or b""
    assert b"hdrgm" not in result
    assert result.count(b"\xff\xd8\xff") == 1


@pytest.mark.parametrize("factor", [0.3, 1.3])
def test_linear_light_is_resized_as_the_same_picture_in_srgb(factor: float) -> None:
    """Lanczos' undershoot would be cut off at black where the darkest tones have the fewest values."""
    shown = np.rint(65535 * encode(np.rint(65535 * decode(coffee()[:200, :300] / 255)) / 65535))
    linear = np.rint(65535 * decode(shown / 65535)).astype(np.uint16)
    request = {"scale": {"size": factor, "scaling": "exact"}}
    found = imgsvc.to_numpy(png_with(linear, gama(100_000)), request)
    expected = imgsvc.to_numpy(shown.astype(np.uint16), request)
    assert np.abs(found.astype(int) - expected).max() <= 257


@pytest.mark.parametrize("space", ["CMYK", "LAB"])
def test_colors_are_converted_before_a_picture_is_enlarged(space: str) -> None:
    data = io.BytesIO()
    picture = Image.fromarray(coffee()[:60, :90])
    if space == "LAB":
        profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        picture = ImageCms.profileToProfile(picture, *profiles, outputMode="LAB")
    picture.convert(space).save(data, "TIFF")
    request = {"resize": {"width": 120}}
    converted = imgsvc.to_numpy(data.getvalue())
    assert (imgsvc.to_numpy(data.getvalue(), request) == imgsvc.to_numpy(converted, request)).all()
