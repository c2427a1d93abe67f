"""Photographs that jpegli encodes: smaller, as good, and with all that other JPEGs have."""

from __future__ import annotations

import io
import statistics
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms
from ssimulacra2 import compute_ssimulacra2

from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.formats.jpeg import jpegli
from imgsvc_core.formats.metadata import EXIF, XMP
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import SaveSettings
from tests.support import photos
from tests.support.handmade import vips
from tests.support.perceptual import distance

pytest.importorskip("pyjpegli")

PHOTOGRAPHS = ("astronaut", "cat", "coffee", "rocket")


def write(image: pyvips.Image, **options: Any) -> bytes:
    data = save(image, SaveSettings(format="jpg", **options)).data
    assert data is not None
    return data


def facts(data: bytes) -> ImageInfo:
    return probe(ByteSource(data)).info


def by_libvips(image: pyvips.Image, quality: int) -> bytes:
    data: bytes = image.jpegsave_buffer(Q=quality, interlace=True, subsample_mode="on", keep="none")
    return data


def look(pixels: photos.Pixels, data: bytes) -> float:
    original = io.BytesIO()
    Image.fromarray(pixels).save(original, "BMP")
    original.seek(0)
    return float(compute_ssimulacra2(original, io.BytesIO(data)))


def part(name: str) -> photos.Pixels:
    return photos.photo(name)[:200, :300].copy()


@pytest.mark.parametrize("quality", [20, 35, 50, 65, 80, 89])
def test_photographs_look_as_good_as_by_libjpeg(quality: int) -> None:
    pictures = [part(name) for name in PHOTOGRAPHS]
    ours = [look(pixels, write(vips(pixels), quality=quality)) for pixels in pictures]
    usual = [look(pixels, by_libvips(vips(pixels), quality)) for pixels in pictures]
    assert statistics.mean(ours) > statistics.mean(usual) - 0.75


def test_photographs_are_smaller_than_progressive_ones() -> None:
    pictures = [vips(part(name)) for name in PHOTOGRAPHS]
    ours, usual = (
        sum(map(len, made)) for made in ([*map(write, pictures)], [by_libvips(one, 80) for one in pictures])
    )
    assert ours < 0.98 * usual


@pytest.mark.parametrize("name", photos.COLOR)
def test_photographs_are_baseline(name: str) -> None:
    found = facts(write(vips(photos.photo(name))))
    assert (found.interlaced, found.subsample) == (False, "4:2:0")


@pytest.mark.parametrize(
    "options",
    [{"progressive": True}, {"effort": 3}, {"quality": 19}, {"quality": 90}, {"subsampling": "444"}],
    ids=str,
)
def test_what_it_cannot_is_progressive(options: dict[str, Any]) -> None:
    assert facts(write(vips(part("coffee")), **options)).interlaced


def test_drawings_and_gray_are_progressive() -> None:
    text = np.full((120, 160, 3), 255, np.uint8)
    text[::6, ::3] = 0
    for picture in (text, photos.camera()):
        assert facts(write(vips(picture))).interlaced


def test_smooth_gradients_are_progressive_and_smaller() -> None:
    sky = np.linspace((20, 60, 140), (250, 180, 120), 400)[:, None].repeat(300, axis=1)
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, sky.shape)
    picture = vips(np.rint(sky + noise).astype(np.uint8))
    data = write(picture)
    assert facts(data).interlaced
    assert len(data) < len(jpegli.encode(picture, 80))


def test_without_the_package_photographs_are_progressive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jpegli, "has_encoder", lambda: False)
    assert facts(write(vips(part("coffee")))).interlaced


@settings(max_examples=25, deadline=None)
@given(width=st.integers(2, 70), height=st.integers(1, 70), quality=st.integers(20, 89))
def test_any_size(width: int, height: int, quality: int) -> None:
    pixels = photos.coffee()[100 : 100 + height, 200 : 200 + width].copy()
    data = write(vips(pixels), quality=quality, photograph=True)
    shown = Image.open(io.BytesIO(data))
    assert (shown.size, shown.mode, facts(data).interlaced) == ((width, height), "RGB", False)
    assert distance(np.asarray(shown), pixels) < 0.2


@pytest.mark.parametrize("padding", [0, 65_000, 200_000])
def test_profile_and_metadata_stay(padding: int) -> None:
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes() + bytes(padding))
    profile[:4] = len(profile).to_bytes(4, "big")
    exif = Image.Exif()
    exif[0x010E] = "a cup"
    image = vips(part("coffee")).copy()
    xmp = (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" dc:source="a shelf"/>'
        b"</rdf:RDF></x:xmpmeta>"
    )
    for name, blob in ((PROFILE, bytes(profile)), (EXIF, exif.tobytes()[6:]), (XMP, xmp)):
        image.set_type(pyvips.GValue.blob_type, name, blob)
    data = write(image, metadata="keep")
    shown = Image.open(io.BytesIO(data))
    assert not facts(data).interlaced
    assert shown.info["icc_profile"] == bytes(profile)
    assert shown.getexif()[0x010E] == "a cup"
    assert b"a shelf" in shown.info["xmp"]
    assert "icc_profile" in Image.open(io.BytesIO(write(image))).info
    assert not Image.open(io.BytesIO(write(image))).getexif()


def test_qualities_of_both_grow_together() -> None:
    own = [jpegli.own_quality(quality) for quality in range(20, 90)]
    assert own == sorted(own)
    assert (own[0], own[-1]) == (13, 89)


@pytest.mark.parametrize("quality", [*range(20, 90, 4), 89])
def test_their_tables_tell_the_quality(quality: int) -> None:
    assert facts(write(vips(part("coffee")), quality=quality)).quality == pytest.approx(quality, abs=2)


@pytest.mark.parametrize(("height", "taken"), [(4000, True), (4001, False)])
def test_only_pictures_that_may_be_held_in_memory_are_taken(height: int, taken: bool) -> None:
    """The encoder takes all pixels at once: 16 megapixels, as may be examined."""
    image = pyvips.Image.black(4000, height, bands=3).copy(interpretation="srgb")
    assert jpegli.can_write(image, SaveSettings(format="jpg", quality=80)) is taken
