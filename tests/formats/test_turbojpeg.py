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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import pyvips
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from imgsvc_core import Output, Resize, Spec, process
from imgsvc_core.errors import CorruptImage, ImgsvcError, UnsupportedFormat
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg import Jpeg, turbojpeg
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
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
    picture = probe(ByteSource(data))
    assert isinstance(picture, Jpeg)
    assert picture.header.scan is not None
    pixels: Pixels | None = turbojpeg.decoded(picture, shrink)
    return pixels


def read(data: bytes, **settings: Any) -> pyvips.Image:
    source = ByteSource(data)
    return load(probe(source), LoadSettings(**settings))


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
        patch.setattr(turbojpeg, "decoder", lambda: None)
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
    width=st.integers(1, 150),
    height=st.integers(1, 150),
    shrink=st.sampled_from(_SHRINKS),
    subsampling=st.sampled_from(["4:4:4", "4:2:2", "4:2:0", "4:1:1"]),
    mode=st.sampled_from(["RGB", "L"]),
)
def test_pixels_are_those_of_libvips(
    width: int, height: int, shrink: int, subsampling: str, mode: str
) -> None:
    data = photo(width, height, subsampling=subsampling, mode=mode)
    pixels = at_once(data, shrink)
    if min(width, height) < 8 and (width % shrink or height % shrink):
        assert pixels is None
        return
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
        patch.setattr(turbojpeg, "decoder", lambda: None)
        expected = process(data, spec).data
    assert process(data, spec).data == expected


@given(
    place=st.integers(0, 2**16),
    value=st.integers(0, 255),
    cut=st.integers(0, 2**16),
    shrink=st.sampled_from(_SHRINKS),
)
def test_damage_is_told_with_and_without_the_package(place: int, value: int, cut: int, shrink: int) -> None:
    data = bytearray(photo(96, 80, exif=_exif(), restart_marker_blocks=2))
    data[place % len(data)] = value
    damaged = bytes(data[: max(200, len(data) - cut)] if cut < len(data) else data)
    settings = {"shrink": shrink, "sequential": False}
    assert outcome(damaged, **settings) == by_libvips(damaged, **settings)


def _flipped(whole: bytes, place: int, steps: random.Random) -> bytes:
    return whole[:place] + bytes([whole[place] ^ steps.randrange(1, 256)]) + whole[place + 1 :]


def _doubled(whole: bytes, place: int, _: random.Random) -> bytes:
    return whole[: place + 150] + whole[place:]


def _marked(whole: bytes, place: int, steps: random.Random) -> bytes:
    """A marker that is none, near the end."""
    place = max(place, len(whole) - 40 - place % 100)
    return whole[:place] + bytes([0xFF, steps.randrange(1, 0xD0)]) + whole[place + 2 :]


_DAMAGES = (_flipped, _doubled, _marked)
_DAMAGED: dict[str, Callable[[], bytes]] = {
    "4:2:0": lambda: photo(301, 207),
    "4:4:4": lambda: photo(301, 207, subsampling="4:4:4"),
    "restarts": lambda: photo(301, 207, restart_marker_blocks=7),
    "gray": lambda: photo(301, 207, mode="L"),
    "four channels": lambda: photo(301, 207, mode="CMYK"),
    "small": lambda: photo(60, 50),
    "large": lambda: photo(4200, 4000),
    "bytes of a marker in a segment": lambda: photo(301, 207, exif=_exif() + b"\xff\xc3"),
}


@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.parametrize("kind", _DAMAGED)
def test_damage_that_another_decoder_warns_of_is_told(
    kind: str, damage: Callable[[bytes, int, random.Random], bytes]
) -> None:
    """In the whole picture as in a small one, with and without the package."""
    whole = _DAMAGED[kind]()
    start, steps = whole.index(b"\xff\xda") + 14, random.Random(7)
    warned = 0
    for _ in range(2 if kind == "large" else 12):
        data = damage(whole, steps.randrange(start, len(whole) - 200), steps)
        if not _warned_of(data):
            continue
        warned += 1
        for size in (1, 0.3):
            with pytest.raises(CorruptImage, match="is damaged or truncated: "):
                process(data, {"scale": {"size": size}})
        assert by_libvips(data) == (CorruptImage,)
    assert warned


def _warned_of(data: bytes) -> bool:
    command = [requires.program("convert"), "-regard-warnings", "jpg:-", "null:"]
    return subprocess.run(command, input=data, capture_output=True, check=False).returncode != 0


def lossless(bits: int = 8) -> bytes:
    pixels = photos.astronaut()
    samples = pixels if bits == 8 else pixels.astype(np.uint16) << (bits - 8)
    data: bytes = imagecodecs.jpeg8_encode(samples, lossless=True, bitspersample=bits)
    return data


@pytest.mark.parametrize("threads", [1, 2, None])
@pytest.mark.parametrize("pillow", [True, False])
def test_lossless_files_are_decoded_whole(threads: int | None, pillow: bool) -> None:
    """They cannot be decoded small: libvips shows a corner then, and TurboJPEG writes out of bounds."""
    spec = Spec(resize=Resize(width=64, pillow=pillow), output=Output(format="png"))
    result = process(lossless(), spec, threads=threads)
    expected = Image.fromarray(photos.astronaut()).resize((64, 64), Image.Resampling.LANCZOS)
    assert distance(np.asarray(Image.open(io.BytesIO(result.data))), np.asarray(expected)) < 0.03


def test_what_may_be_taken_for_lossless_is_left_to_libvips() -> None:
    """Decoders look for the next marker where a segment does not follow the one before."""
    whole = photo(301, 203, exif=_exif())
    table = whole.index(b"\xff\xdb")
    filled = whole[:table] + b"\xff" + whole[table:]
    assert probe(ByteSource(filled)).header.scan is None
    assert outcome(filled) == by_libvips(filled)


@pytest.mark.parametrize(
    "stated", [b"\1\0\x48\0\x60", b"\2\0\x10\0\x18", b"\0\0\2\0\3"], ids=["in", "cm", "ratio"]
)
def test_the_last_of_two_resolutions_counts(stated: bytes) -> None:
    data = photo(61, 43, dpi=(300, 300))
    start = data.index(b"JFIF") - 4
    last = data[start : start + 11] + stated + b"\0\0"
    data = data[: start + 18] + last + data[start + 18 :]
    assert at_once(data) is not None
    assert outcome(data) == by_libvips(data)


def test_bytes_within_segments_are_no_markers() -> None:
    data = photo(301, 203, exif=_exif() + b"\xff\xc3")
    assert at_once(data) is not None
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


_REST: dict[str, Callable[[], bytes]] = {
    "progressive": lambda: files.jpeg_progressive().data,
    "four channels": lambda: files.jpeg_cmyk().data,
    "large": lambda: photo(4200, 4000),
}


@pytest.mark.parametrize("kind", _REST)
def test_the_rest_is_left_to_libvips(kind: str) -> None:
    data = _REST[kind]()
    if kind != "progressive":
        assert at_once(data) is None
    assert outcome(data, sequential=False) == by_libvips(data, sequential=False)


@pytest.mark.parametrize("padding", [b"\0", bytes(512), b"\0\0\0\x00" * 9])
@pytest.mark.parametrize("behind", [b"", photo(64, 64), b"\x31\xff\xd9" + bytes(40) + b"\xff\xd9"])
@pytest.mark.parametrize("progressive", [False, True])
def test_padding_before_the_end_is_no_damage(padding: bytes, behind: bytes, progressive: bool) -> None:
    whole = photo(301, 207, progressive=progressive)
    padded = whole[:-2] + padding + whole[-2:] + behind
    assert outcome(padded) == by_libvips(padded) == outcome(whole)


@pytest.mark.parametrize("rest", [bytes(range(1, 20)), bytes(40) + b"\x51" + bytes(40)])
@pytest.mark.parametrize("behind", [b"", bytes(1000) + b"\xff\xd9"])
@pytest.mark.parametrize("options", [{}, {"mode": "L"}, {"mode": "CMYK"}, {"progressive": True}])
def test_coded_data_that_is_left_over_is_damage(rest: bytes, behind: bytes, options: dict[str, Any]) -> None:
    whole = photo(301, 207, **options)
    left_over = whole[:-2] + rest + whole[-2:] + behind
    with pytest.raises(CorruptImage, match="extraneous"):
        process(left_over)
    assert by_libvips(left_over) == (CorruptImage,)
