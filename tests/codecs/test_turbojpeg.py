"""JPEGs that are decoded at once come out as they do from libvips: pixels and metadata. Damage is told."""

from __future__ import annotations

import ctypes
import functools
import io
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imgsvc_core import process
from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.boundary import translate_errors
from imgsvc_core.codecs.headers.jpeg import is_plain
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.probe import probe
from imgsvc_core.codecs.readers import load, turbojpeg
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.errors import CorruptImage, ImgsvcError, UnsupportedFormat
from tests.support import encoded as files
from tests.support import photos, requires
from tests.support.handmade import pillow
from tests.support.perceptual import distance
from tests.support.photos import Pixels

BLOBS = ("icc-profile-data", "exif-data", "xmp-data", "iptc-data")
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"
IPTC = b"Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0\x08\x1c\x02\x50\0\x03Ann"
_SHRINKS = (1, 2, 4, 8)


def at_once(data: bytes, shrink: int = 1) -> Pixels | None:
    source = ByteSource(data)
    pixels: Pixels | None = turbojpeg.decoded(source, probe(source), shrink)
    return pixels


def read(data: bytes, **settings: Any) -> pyvips.Image:
    source = ByteSource(data)
    return load(source, probe(source), LoadSettings(**settings))


def outcome(data: bytes, *, shrink: int = 1, **settings: Any) -> tuple[object, ...]:
    """The pixels and what is attached to them, or the kind of error."""
    try:
        with translate_errors("jpg"):
            image = read(data, scale=1 / shrink, **settings)
            pixels = image.write_to_memory()
    except ImgsvcError as error:
        return (type(error),)
    fields = (*BLOBS, "resolution-unit")
    blobs = [image.get(name) if image.get_typeof(name) else None for name in fields]
    facts = (
        image.width,
        image.height,
        image.bands,
        image.format,
        image.interpretation,
        image.xres,
        image.yres,
    )
    return pixels, *facts, *blobs


def by_libvips(data: bytes, **options: Any) -> tuple[object, ...]:
    """The outcome where TurboJPEG is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turbojpeg, "decode_jpeg", None)
        return outcome(data, **options)


@functools.cache
def photo(width: int, height: int, **options: Any) -> bytes:
    picture = Image.fromarray(photos.astronaut()).resize((width, height))
    return pillow(picture.convert(options.pop("mode", "RGB")), "JPEG", quality=90, **options)


def _exif() -> bytes:
    exif = Image.Exif()
    exif[0x0112], exif[0x013B], exif[0x8298] = 6, "Ann", "Held by Ann"
    return exif.tobytes()


def labelled() -> bytes:
    """A file with all kinds of metadata, and a resolution."""
    picture = pyvips.Image.new_from_buffer(photo(301, 203), "").copy(xres=10, yres=5)
    picture.set_type(pyvips.GValue.refstr_type, "resolution-unit", "in")
    for name, blob in zip(BLOBS, (files.profile(), _exif(), XMP, IPTC), strict=True):
        picture.set_type(pyvips.GValue.blob_type, name, blob)
    data: bytes = picture.jpegsave_buffer(keep="all")
    return data


@given(
    width=st.integers(64, 150),
    height=st.integers(64, 150),
    shrink=st.sampled_from(_SHRINKS),
    subsampling=st.sampled_from(["4:4:4", "4:2:2", "4:2:0", "4:1:1"]),
    mode=st.sampled_from(["RGB", "L"]),
)
def test_pixels_are_those_of_libvips(
    width: int, height: int, shrink: int, subsampling: str, mode: str
) -> None:
    data = photo(width, height, subsampling=subsampling, mode=mode)
    pixels = at_once(data, shrink)
    assert pixels is not None
    expected = pyvips.Image.jpegload_buffer(data, shrink=shrink)
    whole = pixels[: expected.height, : expected.width]
    assert np.array_equal(whole, expected.numpy().reshape(expected.height, expected.width, expected.bands))
    assert pixels.shape[:2] == (math.ceil(height / shrink), math.ceil(width / shrink))


@pytest.mark.parametrize("shrink", _SHRINKS)
@pytest.mark.parametrize("sequential", [True, False])
def test_what_is_attached_stays(shrink: int, sequential: bool) -> None:
    data = labelled()
    assert at_once(data, shrink) is not None
    settings = {"shrink": shrink, "sequential": sequential}
    found = outcome(data, **settings)
    assert found == by_libvips(data, **settings)
    assert None not in found


@pytest.mark.parametrize("format", ["jpg", "tiff"])
@pytest.mark.parametrize("metadata", ["strip", "copyright", "keep"])
def test_results_are_the_same_without_the_package(metadata: str, format: str) -> None:
    data = labelled()
    spec = {"resize": {"width": 70}, "output": {"format": format, "metadata": metadata}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turbojpeg, "decode_jpeg", None)
        expected = process(data, spec).data
    assert process(data, spec).data == expected


@given(
    place=st.integers(0, 2**16),
    value=st.integers(0, 255),
    cut=st.integers(0, 2**16),
    shrink=st.sampled_from(_SHRINKS),
)
def test_damage_that_libvips_tells_is_told(place: int, value: int, cut: int, shrink: int) -> None:
    data = bytearray(photo(96, 80, exif=_exif(), restart_marker_blocks=2))
    data[place % len(data)] = value
    damaged = bytes(data[: max(200, len(data) - cut)] if cut < len(data) else data)
    settings = {"shrink": shrink, "sequential": False}
    found, expected = outcome(damaged, **settings), by_libvips(damaged, **settings)
    assert found in (expected, (CorruptImage,))


def test_damage_that_another_decoder_warns_of_is_told() -> None:
    """Single bytes of the coded data are wrong; libvips alone says nothing of most of them."""
    whole = photo(301, 207)
    start, steps = whole.index(b"\xff\xda") + 14, random.Random(7)
    warned = 0
    for _ in range(60):
        data = bytearray(whole)
        data[steps.randrange(start, len(data) - 2)] ^= steps.randrange(1, 256)
        judge = subprocess.run(
            [requires.program("convert"), "-regard-warnings", "jpg:-", "null:"],
            input=data,
            capture_output=True,
            check=False,
        )
        if judge.returncode:
            warned += 1
            with pytest.raises(CorruptImage, match="is damaged or truncated: "):
                process(bytes(data), {"scale": {"size": 0.25}})
        else:
            assert process(bytes(data), {"scale": {"size": 0.25}}).data
    assert warned >= 5


def lossless(bits: int = 8) -> bytes:
    pixels = photos.astronaut()
    samples = pixels if bits == 8 else pixels.astype(np.uint16) << (bits - 8)
    data: bytes = imagecodecs.jpeg8_encode(samples, lossless=True, bitspersample=bits)
    return data


@pytest.mark.parametrize("threads", [1, 2, None])
def test_lossless_files_are_decoded_whole(threads: int | None) -> None:
    """They cannot be decoded small: libvips shows a corner then, and TurboJPEG writes out of bounds."""
    result = process(lossless(), {"resize": {"width": 64}, "output": {"format": "png"}}, threads=threads)
    expected = Image.fromarray(photos.astronaut()).resize((64, 64), Image.Resampling.LANCZOS)
    assert distance(np.asarray(Image.open(io.BytesIO(result.data or b""))), np.asarray(expected)) < 0.03


def test_what_may_be_taken_for_lossless_is_left_to_libvips() -> None:
    data = photo(301, 203, exif=_exif() + b"\xff\xc3")
    assert not is_plain(HeaderReader(ByteSource(data), "JPEG"))
    assert is_plain(HeaderReader(ByteSource(photo(301, 203, exif=_exif())), "JPEG"))
    assert outcome(data) == by_libvips(data)


def test_lossless_files_of_other_depths_are_refused_for_what_they_are() -> None:
    with pytest.raises(UnsupportedFormat, match="lossless with 12 bits"):
        process(lossless(12))


@pytest.mark.skipif(sys.platform != "linux", reason="libvips is found by Linux' list of what is loaded")
def test_an_error_tells_nothing_of_another_picture() -> None:
    """libvips keeps warnings of pictures that were good enough, and adds the next errors to them."""
    loaded = re.search(r"/\S*libvips\S*\.so\S*", Path("/proc/self/maps").read_text())
    assert loaded
    broken = photo(301, 207)[:6000]

    def message() -> str:
        with pytest.raises(CorruptImage) as caught:
            process(broken, {"scale": {"size": 0.25}})
        return caught.value.message

    alone = message()
    ctypes.CDLL(loaded[0]).vips_error(b"VipsJpeg", b"what was wrong with another")
    assert message() == alone


@pytest.mark.parametrize(
    "data",
    [
        files.jpeg_progressive().data,
        files.jpeg_cmyk().data,
        photo(63, 400),
        photo(4100, 2100),
    ],
    ids=["progressive", "four channels", "small", "large"],
)
def test_the_rest_is_left_to_libvips(data: bytes) -> None:
    if data != files.jpeg_progressive().data:
        assert at_once(data) is None
    assert outcome(data, sequential=False) == by_libvips(data, sequential=False)


@pytest.mark.parametrize("padding", [b"\0", bytes(512), b"\0\0\0\x00" * 9])
def test_padding_before_the_end_is_no_damage(padding: bytes) -> None:
    whole = photo(301, 207)
    assert outcome(whole[:-2] + padding + whole[-2:]) == outcome(whole)


@pytest.mark.parametrize("rest", [bytes(range(1, 20)), bytes(40) + b"\x51" + bytes(40)])
def test_coded_data_that_is_left_over_is_damage(rest: bytes) -> None:
    whole = photo(301, 207)
    with pytest.raises(CorruptImage, match="extraneous"):
        process(whole[:-2] + rest + whole[-2:])
