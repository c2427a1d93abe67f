"""AVIF by two decoders: Pillow for stills of 8 bits, libvips for all others."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.heif import Avif, avif_reading
from imgsvc_core.formats.reader import HeaderReader
from tests.support import photos
from tests.support.handmade import vips
from tests.support.photos import Pixels

SIZE = (1003, 603)


def _photo() -> Image.Image:
    return Image.fromarray(photos.mosaic(*SIZE))


def _avif(image: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "AVIF", speed=9, **{"quality": 80, **options})
    return file.getvalue()


def _probed(data: bytes) -> Avif:
    picture = Avif.probe(HeaderReader(ByteSource(data), "AVIF"))
    assert isinstance(picture, Avif)
    return picture


def _pixels(data: bytes) -> Pixels:
    made = imgsvc.process(data, {"output": {"format": "png"}}).data
    assert made is not None
    with Image.open(io.BytesIO(made)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


@pytest.mark.parametrize("subsampling", ["4:2:0", "4:2:2", "4:4:4"])
@pytest.mark.parametrize("range_", ["full", "limited"])
def test_pixels_are_those_of_libvips_and_nearer_to_the_original(
    subsampling: str, range_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _avif(_photo(), subsampling=subsampling, range=range_)
    assert avif_reading.suits(_probed(data))
    found = _pixels(data)
    monkeypatch.setattr(avif_reading, "suits", lambda picture: False)
    other, original = _pixels(data), np.asarray(_photo()).astype(int)
    assert np.abs(found - other).mean() < 1
    assert ((found - original) ** 2).mean() <= 1.02 * ((other - original) ** 2).mean()


def test_a_file_of_libvips_that_states_no_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    data = vips(np.asarray(_photo())).heifsave_buffer(compression="av1", Q=70, effort=0)
    assert avif_reading.suits(_probed(data))
    found = _pixels(data)
    monkeypatch.setattr(avif_reading, "suits", lambda picture: False)
    assert np.abs(found - _pixels(data)).mean() < 1


def test_metadata_stays() -> None:
    exif = Image.Exif()
    exif[0x013B] = "Ansel"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    xmp = (
        b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:Label="Green"/>'
        b"</rdf:RDF></x:xmpmeta>"
    )
    data = _avif(_photo(), exif=exif, icc_profile=profile, xmp=xmp)
    assert avif_reading.suits(_probed(data))
    kept = imgsvc.process(data, {"output": {"format": "png", "metadata": "keep"}}).data
    assert kept is not None
    with Image.open(io.BytesIO(kept)) as image:
        assert image.getexif()[0x013B] == "Ansel"
        assert image.info["icc_profile"] == profile
    assert b"Green" in kept


def test_halved_colors_beside_transparency_are_as_exact() -> None:
    clear = _photo().convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(SIZE).point([255] * 128 + [128] * 128))
    opaque, straight, multiplied = (
        _pixels(_avif(image, subsampling="4:2:0", alpha_premultiplied=multiplied))
        for image, multiplied in ((_photo(), False), (clear, False), (clear, True))
    )
    top = slice(0, SIZE[1] // 2 - 8)
    assert np.abs(straight[top] - opaque[top]).max() <= 1
    assert np.abs(multiplied - straight).mean() < 3


def test_damaged_metadata_refuse_no_picture() -> None:
    exif = Image.Exif()
    exif[0x013B] = "Ansel"
    data = _avif(_photo(), exif=exif)
    block = exif.tobytes().removeprefix(b"Exif\0\0")
    assert data.count(block) == 1
    damaged = data.replace(block, b"??" + block[2:])
    assert np.abs(_pixels(damaged) - _pixels(data)).mean() < 1


def _deep() -> bytes:
    wide = vips(np.asarray(_photo())).cast("ushort") * 257
    return bytes(wide.copy(interpretation="rgb16").heifsave_buffer(compression="av1", bitdepth=10, effort=0))


def _multiplied() -> bytes:
    clear = _photo().convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(SIZE))
    return _avif(clear, alpha_premultiplied=True)


OTHERS: dict[str, Callable[[], bytes]] = {
    "10 bits": _deep,
    "multiplied": _multiplied,
    "frames": lambda: _avif(_photo(), save_all=True, append_images=[_photo().rotate(90)]),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_all_others_are_for_libvips(kind: str) -> None:
    data = OTHERS[kind]()
    assert not avif_reading.suits(_probed(data))
    assert _pixels(data).size


def test_damage_is_told_and_harms_nobody() -> None:
    data = _avif(_photo(), quality=50)
    with pytest.raises(imgsvc.CorruptImage):
        imgsvc.process(data[: len(data) // 2], {"output": {"format": "jpg"}})
    random = np.random.default_rng(7)
    start = data.index(b"mdat") + 4
    told = 0
    for _ in range(40):
        damaged = bytearray(data)
        for place in random.integers(start, len(data), 8):
            damaged[place] = random.integers(256)
        try:
            assert imgsvc.process(bytes(damaged), {"resize": {"width": 64}}).output.width == 64
        except imgsvc.CorruptImage:
            told += 1
    assert told > 0
