"""Errors of codecs become errors of the library, and mistakes of our own do not."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.boundary import decoder, encoder, encoding, translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.table import FORMATS
from tests.support import photos, requires
from tests.support.encoded import encoded
from tests.support.handmade import pillow, vips


def more_than_there_is() -> Any:
    return bytearray(1 << 62)


@pytest.mark.parametrize("guard", [decoder, translate_errors])
def test_no_memory_for_a_source(guard: Any) -> None:
    with pytest.raises(imgsvc.MemoryLimitExceeded, match="JPEG 2000 image: send a") as caught, guard("jp2"):
        more_than_there_is()
    assert isinstance(caught.value.__cause__, MemoryError)


def test_no_memory_for_a_result() -> None:
    image = vips(photos.astronaut())
    with (
        pytest.raises(imgsvc.MemoryLimitExceeded, match=f"as {FORMATS['tiff'].title}"),
        encoding("tiff", image),
    ):
        more_than_there_is()


@pytest.mark.parametrize("mistake", [TypeError, LookupError, AssertionError, ValueError])
def test_mistakes_of_our_own_are_not_told_as_those_of_the_image(
    monkeypatch: pytest.MonkeyPatch, mistake: type[Exception]
) -> None:
    def mistaken(*_: object) -> None:
        raise mistake("ours")

    for module, function in (("png.reading", "read"), ("png.writing", "write")):
        with monkeypatch.context() as patched:
            patched.setattr(f"imgsvc_core.formats.{module}.{function}", mistaken)
            with pytest.raises(mistake, match="ours"):
                assert imgsvc.process(encoded("png").data, {"output": {"format": "png"}}).data


@pytest.mark.parametrize(
    "call",
    [
        lambda image: pyvips.Operation.call("nosuch", image),
        lambda image: image.resize(),
        lambda image: image.resize(0.5, size=1),
        lambda image: image.resize(-1),
        lambda image: image.embed(0, 0, 1, 2_000_000).resize(1, vscale=5e-7),
        lambda image: image.resize(0.5, kernel="blunt"),
        lambda image: image.colourspace("nosuch"),
        lambda image: image.get("n-subifds"),
        lambda image: image.set("delay", [100]),
    ],
)
@pytest.mark.parametrize("guard", [translate_errors, encoding])
def test_wrong_calls_of_libvips_are_not_told_as_damage(guard: Any, call: Any) -> None:
    image = pyvips.Image.black(8, 8)
    arguments = ("png", image) if guard is encoding else ("png",)
    with pytest.raises(pyvips.Error), guard(*arguments):
        call(image)


def test_what_libvips_cannot_do_is_told_as_damage_or_failure() -> None:
    image = pyvips.Image.black(8, 8)
    with pytest.raises(imgsvc.CorruptImage, match="PNG image is damaged"), translate_errors("png"):
        pyvips.Image.pngload_buffer(b"abc")
    with pytest.raises(imgsvc.EncodingFailed, match="written as PNG"), encoding("png", image):
        image.crop(4, 4, 8, 8)


def test_a_reason_that_libvips_gives_once_is_told() -> None:
    """It decodes while it is written, so it fails in the writer first."""
    data = encoded("tiff").data
    with pytest.raises(imgsvc.CorruptImage, match="damaged or truncated: Decoding error at scanline"):
        imgsvc.process(damaged_deflate(data), {"output": {"format": "png"}}, io.BytesIO())


@pytest.mark.parametrize("request_", [{}, {"resize": {"width": 30}}, {"rotate": {"angle": 90}}])
@pytest.mark.parametrize(
    "name",
    ["jpeg", "jpeg_progressive", "jpeg_cmyk", "png", "png_interlaced", "avif", "avif_animated", "jxl", "jp2"],
)
def test_damage_is_told_alike_with_and_without_a_target(name: str, request_: dict[str, Any]) -> None:
    data = encoded(name).data
    told = []
    for target in (None, io.BytesIO()):
        with pytest.raises(imgsvc.CorruptImage) as caught:
            imgsvc.process(data[: len(data) * 3 // 5], {**request_, "output": {"format": "webp"}}, target)
        told.append(caught.value.message)
    assert told[0] == told[1]
    assert re.search("source image is|vips|load error|object at 0x", told[0], re.IGNORECASE) is None


def damaged_deflate(data: bytes) -> bytes:
    """The picture again, in strips whose data is cut off by wrong bytes."""
    file = io.BytesIO()
    Image.open(io.BytesIO(data)).convert("RGB").save(file, "TIFF", compression="tiff_adobe_deflate")
    whole = bytearray(file.getvalue())
    start = whole.index(b"\x78\x9c") if b"\x78\x9c" in whole else whole.index(b"\x78")
    whole[start + 40 : start + 60] = bytes(20)
    return bytes(whole)


def test_messages_of_libvips_may_quote_any_bytes() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = pillow(photos.astronaut()[:64, :64], "AVIF", exif=exif.tobytes())
    with pytest.raises(imgsvc.UnsupportedFormat, match=r"AVIF image cannot be read: .*iro\ufffd"):
        imgsvc.process(data.replace(b"irot", b"iro\xff"), {"output": {"format": "png"}})


def test_own_mistakes_with_text_stay_mistakes() -> None:
    with pytest.raises(UnicodeDecodeError), translate_errors("png"):
        b"\xff".decode()


def test_a_heic_without_a_picture_that_can_be_put_together() -> None:
    file = io.BytesIO()
    requires.module("pillow_heif").from_pillow(Image.fromarray(photos.astronaut()[:64, :64])).save(file)
    data = file.getvalue()
    second = data.index(b"ipma") + 16  # after the number of the item and of its first property
    broken = data[:second] + b"\x69" + data[second + 1 :]
    with pytest.raises(imgsvc.CorruptImage, match="cannot be put together"):
        imgsvc.process(broken, {"output": {"format": "png"}})


@pytest.mark.parametrize("name", [b"photo.png", b"\xe9t\xe9.png"])
def test_a_file_that_vanishes_is_not_told_as_damage(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(encoded("png").data)
    source = ByteSource(path)
    picture = probe(source)
    path.unlink()
    assert load(picture).height > 0  # the file is still open
    with pytest.raises(imgsvc.SourceUnreachable, match="No such file"):
        load(picture)
    assert pyvips.Image.black(2, 3).copy().height == 3  # the binding can go on


def test_what_packages_raise_is_told_as_damage_or_failure() -> None:
    with (
        pytest.raises(imgsvc.CorruptImage, match="JPEG 2000 image is damaged or truncated: odd"),
        decoder("jp2"),
    ):
        raise TypeError("odd.")
    with pytest.raises(imgsvc.EncodingFailed, match="written as JPEG 2000: odd"), encoder("jp2"):
        raise IndexError("odd.")


DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">%s</svg>'


def lossless_ycc() -> bytes:
    """A lossless JPEG whose colors libjpeg-turbo does not convert."""
    imagecodecs = requires.module("imagecodecs")
    data = bytes(imagecodecs.jpeg8_encode(photos.astronaut()[:64, :64].copy(), lossless=True))
    place = data.index(b"Adobe") + 11
    return data[:place] + b"\1" + data[place + 1 :]


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (lossless_ycc, r"supports \(Unsupported color conversion request\); save it"),
        (lambda: DRAWING % (b"<g>" * 300 + b"</g>" * 300), "Excessive depth in document"),
        (
            lambda: DRAWING % (b"<g " + b" ".join(b'a%d=""' % n for n in range(66_000)) + b"/>"),
            "cannot load more than 65535 XML attributes",
        ),
    ],
)
def test_what_a_decoder_does_not_support_is_not_told_as_damage(file: Any, told: str) -> None:
    with pytest.raises(imgsvc.UnsupportedFormat, match=f"cannot be read: .*{told}"):
        imgsvc.process(file(), {"output": {"format": "png"}}, io.BytesIO())


def test_what_a_package_does_not_support_is_not_told_as_damage() -> None:
    for said in ("float24 not supported", "Unsupported depth: 9", "Windows Media Photo not yet supported"):
        with pytest.raises(imgsvc.UnsupportedFormat, match=said), decoder("tiff"):
            raise NotImplementedError(said)


@pytest.mark.parametrize(
    "said",
    [
        "Unsupported marker type 0xf7",
        "Uncompressed data (not supported) at line 8",
        "Cannot handle zero scanline size",
        "Corrupt JPEG data: 16 extraneous bytes before marker 0xe0\nUnsupported JPEG process",
    ],
)
def test_damage_is_not_told_as_unsupported(said: str) -> None:
    with pytest.raises(imgsvc.CorruptImage), translate_errors("jpg"):
        raise pyvips.Error("unable to call jpegload", said)


def test_a_drawing_beyond_its_decoder_is_not_told_as_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Processes of services may use a part of the memory only."""
    monkeypatch.setattr("imgsvc_core.formats.boundary.bytes_left", lambda: 1 << 40)
    for reason, expected in (
        ("glib: exceeded more than 500000 referenced elements", imgsvc.UnsupportedFormat),
        ("glib: rendering error: NoMemory", imgsvc.MemoryLimitExceeded),
    ):
        with pytest.raises(expected), translate_errors("svg"):
            raise pyvips.Error("unable to call svgload", f"svgload: SVG rendering failed\n{reason}\n")


IN_LITTLE_MEMORY = """
import resource, sys
import numpy as np
import imgsvc_core as imgsvc
pixels = np.random.default_rng(1).integers(0, 256, (2000, 2000, 4), np.uint8)
request = {"output": {"format": sys.argv[1]}}
assert imgsvc.process(pixels[:64, :64], request, threads=1).data
held = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (held + 24_000_000,) * 2)
try:
    assert imgsvc.process(pixels, request, limits=imgsvc.Limits.none(), threads=1).data
except imgsvc.ImgsvcError as error:
    print(error.slug, error.message)
"""


@pytest.mark.parametrize("format", ["webp", "avif", "jp2"])
def test_an_encoder_without_memory(format: str) -> None:
    told = subprocess.run([sys.executable, "-c", IN_LITTLE_MEMORY, format], capture_output=True, text=True)
    assert told.stdout.startswith("memory_limit_exceeded The memory is not enough"), told
