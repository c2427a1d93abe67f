"""JPEGs are rewrapped as JPEG XL, and the very same JPEGs come back."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.boxes import FileBox, make_box, read_boxes
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jxl.bits import BitReader, BitWriter, Codestream
from imgsvc_core.formats.reader import HeaderReader
from tests.process.test_original import file
from tests.support import libjxl
from tests.support.encoded import inks, photo, transparent
from tests.support.photos import coffee

WRAP: dict[str, Any] = {"output": {"format": "jxl", "transcode": True}}
UNWRAP: dict[str, Any] = {"output": {"format": "jpg", "transcode": True}}
_SEGMENT = b"\xff\xed\0\x12Photoshop 3.0\0::" + b"\xff\xfe\0\x0ea comment :)"


def jpeg(pixels: Any = None, **options: Any) -> bytes:
    data = io.BytesIO()
    picture = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    picture.save(data, "JPEG", **options)
    return data.getvalue()


_PLAIN = jpeg(photo())
_KINDS = {
    "baseline": lambda: _PLAIN,
    "optimized": lambda: jpeg(photo(), optimize=True, quality=95),
    "progressive": lambda: jpeg(photo(), progressive=True),
    "restarts": lambda: jpeg(photo(), restart_marker_blocks=3),
    "progressive with restarts": lambda: jpeg(photo(), progressive=True, restart_marker_blocks=3),
    "gray": lambda: jpeg(Image.fromarray(photo()).convert("L")),
    "4:4:4": lambda: jpeg(photo(), subsampling=0),
    "4:2:2": lambda: jpeg(photo(), subsampling=1),
    "4:1:1": lambda: jpeg(photo(), subsampling="4:1:1"),
    "RGB": lambda: jpeg(photo(), keep_rgb=True),
    "odd": lambda: jpeg(coffee()[:53, :37]),
    "one pixel": lambda: jpeg(photo()[:1, :1]),
    "coarse": lambda: jpeg(photo(), quality=1),
    "all metadata": lambda: file("jpg"),
    "turned": lambda: file("jpg, progressive", 6),
    "segments": lambda: _PLAIN[:2] + _SEGMENT + _PLAIN[2:],
    "a video behind it": lambda: _PLAIN + bytes(range(256)) * 9,
    "several groups": lambda: jpeg(np.tile(coffee(), (2, 2, 1)), quality=30),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_the_same_jpeg_comes_back(kind: str) -> None:
    data = _KINDS[kind]()
    wrapped = imgsvc.process(data, WRAP)
    assert wrapped.output.format == "jxl"
    assert imgsvc.process(wrapped.data, UNWRAP).data == data


@given(
    size=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    quality=st.integers(1, 100),
    subsampling=st.integers(0, 2),
    progressive=st.booleans(),
    restarts=st.integers(0, 4),
    gray=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_any_jpeg_comes_back(
    size: tuple[int, int], gray: bool, seed: int, restarts: int, **options: Any
) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)
    picture = Image.fromarray(noise).convert("L" if gray else "RGB")
    data = jpeg(picture, restart_marker_blocks=restarts, **options)
    assert imgsvc.process(imgsvc.process(data, WRAP).data, UNWRAP).data == data


@pytest.mark.parametrize("orientation", [1, 6])
def test_facts_and_pixels_are_those_of_the_jpeg(orientation: int) -> None:
    data = file("jpg", orientation, quality=90)
    wrapped = imgsvc.process(data, WRAP, digest=True)
    back = imgsvc.process(wrapped.data, UNWRAP)
    assert len(wrapped.data) < len(data)
    before, inside = imgsvc.inspect(data), imgsvc.inspect(wrapped.data, digest=True)
    assert (inside.upright_size, inside.orientation) == (before.upright_size, before.orientation)
    assert (wrapped.output.bytes, wrapped.output.sha256) == (len(wrapped.data), inside.sha256)
    assert (wrapped.output.width, wrapped.output.height) == before.upright_size
    assert (back.output.quality, back.output.subsample) == (before.quality, before.subsample)
    png = {"output": {"format": "png"}}
    shown = [imgsvc.process(one, png).to_numpy().astype(int) for one in (data, wrapped.data)]
    assert np.abs(shown[0] - shown[1]).mean() < 2


def test_further_pictures_of_a_jpeg_come_back_and_are_no_loss() -> None:
    file = io.BytesIO()
    pictures = [Image.new("RGB", (40, 30), color) for color in ("lime", "red")]
    pictures[0].save(file, "MPO", save_all=True, append_images=pictures[1:])
    wrapped = imgsvc.process(file.getvalue(), WRAP)
    back = imgsvc.process(wrapped.data, UNWRAP)
    assert back.data == file.getvalue()
    assert (wrapped.notes, back.notes) == ((), ())


def test_targets_name_the_format(tmp_path: Path) -> None:
    source, wrapped, back = (tmp_path / name for name in ("a.jpg", "a.jxl", "b.jpg"))
    source.write_bytes(_PLAIN)
    transcode = {"output": {"transcode": True, "metadata": "keep"}}
    assert imgsvc.process(source, transcode, wrapped).output.format == "jxl"
    imgsvc.process(wrapped, transcode, back)
    assert back.read_bytes() == _PLAIN
    alone = imgsvc.process(_PLAIN, transcode)
    assert alone.data == wrapped.read_bytes()
    assert "JPEG as JPEG XL, its coded pixels as they are" in str(imgsvc.explain(transcode, _PLAIN))
    with pytest.raises(imgsvc.UnsupportedOperation, match="makes jxl of jpg, the result is to be webp"):
        imgsvc.process(source, transcode, tmp_path / "a.webp")


def test_facts_of_pixels_may_be_asked_for() -> None:
    result = imgsvc.process(_PLAIN, {"output": {**WRAP["output"], "facts": ["dominant"]}})
    assert result.output.facts["dominant"]
    assert imgsvc.process(result.data, UNWRAP).data == _PLAIN


def test_variants() -> None:
    results = imgsvc.process_variants(_PLAIN, {"exact": WRAP, "small": {"resize": {"width": 9}}})
    assert imgsvc.process(results["exact"].data, UNWRAP).data == _PLAIN
    assert results["small"].output.width == 9


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        ({"resize": {"width": 9}}, "resize"),
        ({"filter": {"sepia": {"value": 9}}}, "filter"),
        ({"redact": [{"faces": True}]}, "redact"),
        ({"output": {"quality": 9}}, "output.quality"),
        ({"output": {"look": "good"}}, "output.look"),
        ({"output": {"keep_pixels": True}}, "output.keep_pixels"),
        ({"output": {"metadata": "strip"}}, "output.metadata"),
        ({"output": {"metadata": "copyright"}}, "output.metadata"),
        ({"output": {"format": "webp"}}, "output.transcode"),
        ({"output": {"format": "auto"}}, "output.transcode"),
    ],
)
def test_nothing_else_can_be_asked_for(request_: dict[str, Any], path: str) -> None:
    asked = {**request_, "output": {"transcode": True, **request_.get("output", {})}}
    with pytest.raises(imgsvc.SpecError, match=r"must (be left out|not be)") as caught:
        imgsvc.parse(asked)
    assert [problem.path for problem in caught.value.problems] == [path]


def _marked(marker: int) -> bytes:
    """Return a JPEG whose frame is told to be coded in another way."""
    return _PLAIN.replace(b"\xff\xc0\0\x11", b"\xff" + bytes((marker,)) + b"\0\x11")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (jpeg(Image.fromarray(inks(), "CMYK")), "holds inks"),
        (_marked(0xC9), "is coded arithmetically"),
        (_marked(0xCA), "is coded arithmetically"),
        (bytes(imagecodecs.ljpeg_encode(photo()[..., 0])), "is lossless"),
        (_PLAIN[:-2], "damaged, cut off, "),
        (_PLAIN[: len(_PLAIN) // 2], "damaged, cut off, "),
        (_PLAIN + bytes(4_300_000), "followed by more than 4 MB"),
        (file("png"), "is for files of JPEG, .* got PNG"),
        (photo(), "is for files of JPEG, .* got pixels"),
        (libjxl.encode(photo()), "was not made of a JPEG"),
        (libjxl.encode(transparent(), boxes={b"xml ": b"<x/>"}), "was not made of a JPEG"),
    ],
)
def test_what_cannot_come_back_is_refused(data: Any, reason: str) -> None:
    with pytest.raises(imgsvc.UnsupportedOperation, match=reason) as caught:
        imgsvc.process(data, {"output": {"transcode": True, "format": None}})
    assert caught.value.path == "output.transcode"
    assert caught.value.message.endswith("to encode the picture again.")


def test_twelve_bits_are_refused() -> None:
    data = bytes(imagecodecs.jpeg8_encode(photo().astype(np.uint16) << 4, bitspersample=12))
    with pytest.raises(imgsvc.UnsupportedOperation, match="has 12 bits"):
        imgsvc.process(data, WRAP)


def test_without_metadata_no_jpeg_comes_back() -> None:
    wrapped = imgsvc.process(file("jpg"), WRAP).data
    stripped = imgsvc.process(wrapped, {"output": {"keep_pixels": True}}).data
    assert b"jbrd" not in stripped
    with pytest.raises(imgsvc.UnsupportedOperation, match="no longer holds"):
        imgsvc.process(stripped, UNWRAP)


@pytest.mark.parametrize("progressive", [False, True])
def test_damaged_files_come_back_or_are_refused(progressive: bool) -> None:
    data = jpeg(photo(), progressive=progressive, restart_marker_blocks=3)
    draw = random.Random(progressive)
    kept, messages = 0, []
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(2, len(data))] = draw.randrange(256)
        damaged = damaged[: draw.choice((None, draw.randrange(9, len(data))))]
        try:
            wrapped = imgsvc.process(bytes(damaged), WRAP).data
        except imgsvc.ImgsvcError as error:
            messages.append(error.message)
            continue
        kept += 1
        assert imgsvc.process(wrapped, UNWRAP).data == damaged
    assert 0 < kept < 150
    assert all(message.endswith(".") for message in messages)


def test_damaged_wrappings_give_a_jpeg_or_an_error() -> None:
    data = imgsvc.process(file("jpg"), WRAP).data
    draw = random.Random(3)
    messages = []
    for _ in range(200):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(12, len(data))] = draw.randrange(256)
        try:
            assert imgsvc.process(bytes(damaged), UNWRAP).output.format == "jpg"
        except imgsvc.ImgsvcError as error:
            messages.append(error.message)
    assert len(messages) > 50
    assert all(message.endswith(".") for message in messages)


def _box(wrapped: bytes) -> FileBox:
    """Return where a file tells how its JPEG was coded."""
    reader = HeaderReader(ByteSource(wrapped), "JPEG XL")
    return next(box for box in read_boxes(reader, 0, reader.size) if box.kind == b"jbrd")


def _with_markers(wrapped: bytes, markers: Sequence[int], size: int = 1 << 16) -> bytes:
    """Return a file whose JPEG has further markers before all others; those of applications have a size."""
    box = _box(wrapped)
    data = wrapped[box.start : box.end]
    reader = HeaderReader(ByteSource(data), "JPEG XL")
    bits = BitReader(Codestream(reader, ((0, len(data)),)), 1)
    while bits.bits(6) != 0xD9 - 0xC0:
        pass
    content = b"".join(
        (bytes((marker,)) + (size - 1).to_bytes(2, "big")).ljust(size, b"\0")
        for marker in markers
        if marker == 0xE5
    )
    segment = _PLAIN[3:20]  # of the JFIF header, which is all that is compressed
    start = next(place for place in range(len(data)) if _decompressed(data[place:]) == segment)
    writer = BitWriter()
    writer.copy(data, 0, 1)
    for marker in markers:
        writer.bits(marker - 0xC0, 6)
    writer.copy(data, 1, bits.position)
    for _ in range(markers.count(0xE5)):
        writer.bits(0, 2)
        writer.bits(size - 1, 16)
    writer.copy(data, bits.position, 8 * start)
    changed = make_box(b"jbrd", writer.data() + imagecodecs.brotli_encode(content + segment))
    return wrapped[: box.start - 8] + changed + wrapped[box.end :]


def _decompressed(data: bytes) -> bytes:
    try:
        return bytes(imagecodecs.brotli_decode(data, out=64))
    except imagecodecs.BrotliError:
        return b""


def test_a_small_file_cannot_announce_much_more_than_a_jpeg_has() -> None:
    """libjxl would take 1.8 GB for the 8,000 segments of one of 27 kB."""
    wrapped = imgsvc.process(_PLAIN, WRAP).data
    few = b"\xff\xe5\xff\xff".ljust(1 + (1 << 16), b"\0") * 3
    assert imgsvc.process(_with_markers(wrapped, [0xE5] * 3), UNWRAP).data == _PLAIN[:2] + few + _PLAIN[2:]
    many = _with_markers(wrapped, [0xE5] * 1025)
    assert len(many) < 10_000
    with pytest.raises(imgsvc.ImageTooLarge, match=r"its JPEG could have 67,\d+,\d+ bytes beside its pixels"):
        imgsvc.process(many, UNWRAP)
    between = _with_markers(wrapped, [0xFF] * 1025)
    with pytest.raises(imgsvc.ImageTooLarge, match="bytes beside its pixels; at most 67,108,864"):
        imgsvc.process(between, UNWRAP)


def test_scans_and_markers_are_counted_before_pixels() -> None:
    wrapped = imgsvc.process(_PLAIN, WRAP).data
    with pytest.raises(imgsvc.UnsupportedFormat, match="has 101 scans; at most 100 are decoded"):
        imgsvc.process(_with_markers(wrapped, [0xDA] * 100), UNWRAP)
    with pytest.raises(imgsvc.CorruptImage, match="more than 16,384 markers"):
        imgsvc.process(_with_markers(wrapped, [0xDB] * 16_384), UNWRAP)


@pytest.mark.parametrize("progressive", [False, True])
def test_damage_of_how_a_jpeg_was_coded(progressive: bool) -> None:
    data = imgsvc.process(jpeg(photo(), progressive=progressive, restart_marker_blocks=3), WRAP).data
    box = _box(data)
    draw = random.Random(progressive)
    messages = []
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(box.start, box.end)] ^= 1 << draw.randrange(8)
        try:
            assert imgsvc.process(bytes(damaged), UNWRAP).output.format == "jpg"
        except imgsvc.ImgsvcError as error:
            messages.append(error.message)
    assert len(messages) > 50
    assert all(message.endswith(".") for message in messages)


def test_strip_is_the_same_as_no_policy() -> None:
    assert imgsvc.Output(metadata="strip") == imgsvc.Output()
    assert imgsvc.parse({"output": {"metadata": "strip"}}).digest == imgsvc.parse({"output": {}}).digest
    assert (imgsvc.Output().policy, imgsvc.Output(transcode=True).policy) == ("strip", "keep")
