"""Real numbers in TIFF and PSD: their profile says what they mean, without one they are linear light."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from tests.formats.test_profiles import FORMULA, GAMMA, LINEAR, P3, SRGB, decoded, profile, shown
from tests.pixels.test_colorspace import encoded
from tests.support import handmade, photos, requires

LIGHT = np.stack(
    [photos.ramp(32, 8) / 255, photos.ramp(32, 8)[:, ::-1] / 255, np.full((8, 32), 0.2)], axis=-1
).astype(np.float32)
GRAY = LIGHT[..., 0]
REC2020 = ((0.67348, 0.27904, -0.00193), (0.16567, 0.67535, 0.02998), (0.12506, 0.04561, 0.79686))


def tiff(samples: Any, icc: bytes | None = None, **options: Any) -> bytes:
    file = io.BytesIO()
    options = {"photometric": "rgb", "iccprofile": icc, **options}
    requires.module("tifffile").imwrite(file, samples, **options)
    return file.getvalue()


def psd(samples: Any, icc: bytes | None = None, **options: Any) -> bytes:
    planes = np.moveaxis(np.atleast_3d(samples), -1, 0).astype(np.float32)
    resources = b"" if icc is None else handmade.psd_resource(1039, icc)
    return handmade.psd_by_hand(planes, 3 if len(planes) >= 3 else 1, resources=resources, **options)


def gray(icc: bytes) -> bytes:
    return icc.replace(b"rTRC", b"kTRC").replace(b"RGB XYZ ", b"GRAYXYZ ")


def levels(data: bytes) -> Any:
    """The result in levels of 255, from a PNG of 16 bits."""
    result = imgsvc.process(data, {"output": {"format": "png"}})
    assert result.output.depth == 16
    return result.to_numpy() / 257


WRITERS: dict[str, Callable[[Any, bytes | None], bytes]] = {
    "TIFF": tiff,
    "TIFF of planes": lambda samples, icc: tiff(np.moveaxis(samples, -1, 0), icc, planarconfig="separate"),
    "TIFF of 16 bits": lambda samples, icc: tiff(samples.astype(np.float16), icc),
    "TIFF of 64 bits": lambda samples, icc: tiff(samples.astype(np.float64), icc),
    "big-endian TIFF": lambda samples, icc: tiff(samples, icc, byteorder=">"),
    "tiled TIFF": lambda samples, icc: tiff(samples, icc, tile=(16, 16), compression="deflate"),
    "PSD": psd,
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    ("curve", "colorants", "light"),
    [
        (None, SRGB, lambda x: x),
        (LINEAR, SRGB, lambda x: x),
        (LINEAR, P3, lambda x: x),
        (LINEAR, REC2020, lambda x: x),
        (FORMULA, SRGB, decoded),
        (GAMMA, P3, lambda x: x ** (563 / 256)),
    ],
    ids=["no profile", "linear", "linear P3", "linear BT.2020", "sRGB", "gamma P3"],
)
def test_colors(
    writer: str, curve: bytes | None, colorants: tuple[tuple[float, ...], ...], light: Callable[[Any], Any]
) -> None:
    icc = None if curve is None else profile(curve, colorants)
    matrix = np.linalg.inv(np.transpose(SRGB)) @ np.transpose(colorants)
    expected = 255 * encoded(light(LIGHT.astype(np.float64)) @ matrix.T)
    tolerance = 0.2 if writer != "TIFF of 16 bits" else 1  # numbers of 11 bits
    assert np.abs(levels(WRITERS[writer](LIGHT, icc)) - expected).max() < tolerance


@pytest.mark.parametrize("writer", ["TIFF", "TIFF in Zstandard", "TIFF whose white is lowest", "PSD"])
@pytest.mark.parametrize(
    ("curve", "light"),
    [(None, lambda x: x), (LINEAR, lambda x: x), (FORMULA, decoded)],
    ids=["no profile", "linear", "sRGB"],
)
def test_gray(writer: str, curve: bytes | None, light: Callable[[Any], Any]) -> None:
    icc = None if curve is None else gray(profile(curve))
    negative = writer.endswith("lowest")
    if writer == "PSD":
        data = psd(GRAY, icc)
    else:
        options = {"compression": "zstd"} if writer.endswith("Zstandard") else {}
        data = tiff(GRAY, icc, photometric="miniswhite" if negative else "minisblack", **options)
    expected = 255 * encoded(light((1 - GRAY if negative else GRAY).astype(np.float64)))
    assert np.abs(levels(data) - expected).max() < 0.2


@pytest.mark.parametrize("write", [tiff, psd])
def test_as_littlecms_has_it(write: Callable[[Any, bytes | None], bytes]) -> None:
    """Steps of 255 as real numbers look like the same steps as bytes, for which Pillow asks LittleCMS."""
    steps = np.rint(LIGHT * 255).astype(np.uint8)
    for icc in (profile(LINEAR), profile(GAMMA, P3), profile(FORMULA, P3)):
        expected = ImageCms.profileToProfile(
            Image.fromarray(steps), ImageCms.ImageCmsProfile(io.BytesIO(icc)), ImageCms.createProfile("sRGB"),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        )  # fmt: skip
        found = shown(imgsvc.process(write(steps / np.float32(255), icc), {"output": {"format": "png"}}).data)
        assert np.abs(found - np.asarray(expected)).max() <= 2


@pytest.mark.parametrize("write", [tiff, psd])
def test_a_profile_of_another_model_or_of_garbage_says_nothing(
    write: Callable[[Any, bytes | None], bytes],
) -> None:
    expected = levels(write(LIGHT, None))
    for icc in (gray(profile(LINEAR)), bytes(200), profile(LINEAR)[:20] + bytes(300)):
        assert np.array_equal(levels(write(LIGHT, icc)), expected)


def test_alpha_is_no_light() -> None:
    alpha = photos.ramp(32, 8)[..., None] / np.float32(255)
    for icc in (None, profile(LINEAR)):
        for kind in ("unassalpha", "assocalpha"):
            color = LIGHT * alpha if kind == "assocalpha" else LIGHT
            found = levels(tiff(np.dstack([color, alpha]), icc, extrasamples=[kind]))
            assert np.abs(found[..., 3:] - 255 * alpha).max() < 0.01
            visible = alpha[..., 0] > 0.02
            assert np.abs(found[..., :3] - 255 * encoded(LIGHT))[visible].max() < 0.3


@pytest.mark.parametrize("icc", [None, profile(LINEAR)])
@pytest.mark.parametrize("colors", [1, 3])
def test_the_white_behind_a_psd_of_32_bits_is_taken_out(colors: int, icc: bytes | None) -> None:
    """The composite is blended onto white in linear light."""
    alpha = photos.ramp(32, 8)[..., None] / np.float32(255)
    color = LIGHT[..., :colors]
    composite = np.dstack([color * alpha + 1 - alpha, alpha])
    icc = gray(icc) if icc and colors == 1 else icc
    found = levels(psd(composite, icc, block=b"Mt32"))
    assert np.abs(found[..., -1:] - 255 * alpha).max() < 0.01
    visible = alpha[..., 0] > 0.02
    assert np.abs(found[..., :-1] - 255 * encoded(color))[visible].max() < 0.3
