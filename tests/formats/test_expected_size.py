"""A picture is decoded at the size that its header states, whatever else its bytes say."""

from __future__ import annotations

import functools
import io
import struct
import zlib

import attrs
import numpy as np
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.plan.decoding import scale_for
from tests.support import photos, requires
from tests.support.encoded import VARIANTS, encoded
from tests.support.handmade import ApngFrame, apng_by_hand, pillow, png_chunk, vips


def tiff(widths: tuple[int, ...], heights: tuple[int, ...], *, big: bool = False) -> bytes:
    """A gray TIFF of one strip with one width tag and one height tag for each number."""
    side = max(*widths, *heights)
    strip = zlib.compress(bytes(side) * side)
    number = 7 + len(widths) + len(heights)
    count, entry, word = ("<Q", "<HHQQ", "<Q") if big else ("<H", "<HHII", "<I")
    head = (b"II+\0\x08\0\0\0" + struct.pack("<Q", 16)) if big else (b"II*\0" + struct.pack("<I", 8))
    start = len(head) + struct.calcsize(count) + number * struct.calcsize(entry) + struct.calcsize(word)
    values = [(256, width) for width in widths] + [(257, height) for height in heights]
    values += [(258, 8), (259, 8), (262, 1), (273, start), (277, 1), (278, side), (279, len(strip))]
    entries = (struct.pack(entry, tag, 4, 1, value) for tag, value in values)
    return head + struct.pack(count, len(values)) + b"".join(entries) + struct.pack(word, 0) + strip


@pytest.mark.parametrize("big", [False, True])
def test_the_first_of_repeated_tags_counts(big: bool) -> None:
    data = tiff((300, 10), (200, 10), big=big)
    info = imgsvc.inspect(data)
    assert (info.width, info.height) == (300, 200)
    with pytest.raises(imgsvc.ImageTooLarge, match="300 x 200"):
        imgsvc.process(data, limits=imgsvc.Limits(source_pixels=10_000))
    assert imgsvc.process(data).output.width == 300
    assert imgsvc.process(tiff((10, 300), (10, 200), big=big)).output.width == 10


@pytest.mark.parametrize(("found", "matches"), [(95, True), (96, True), (97, True), (94, False), (98, False)])
def test_decoders_may_round_to_the_next_pixel(found: int, matches: bool) -> None:
    picture = probe(ByteSource(pillow(np.zeros((64, found, 3), np.uint8), "PNG")))
    picture.info = attrs.evolve(picture.info, width=96)
    if matches:
        load(picture)
        return
    with pytest.raises(imgsvc.CorruptImage, match=f"its header states 96 x 64 pixels, its data {found} x 64"):
        load(picture)


def jp2_with_boxes_of(width: int, height: int) -> bytes:
    """A picture of 96 x 64 pixels whose boxes say another size."""
    data = bytearray(encoded("jp2").data)
    place = data.index(b"ihdr") + 4
    assert struct.unpack_from(">II", data, place) == (64, 96)
    struct.pack_into(">II", data, place, height, width)
    return bytes(data)


@pytest.mark.parametrize("size", [(2_130_706_528, 64), (96, 128), (95, 64), (20_000, 20_000)])
def test_boxes_and_codestream_of_jpeg_2000_agree(size: tuple[int, int]) -> None:
    data = jp2_with_boxes_of(*size)
    for use in (imgsvc.inspect, imgsvc.process):
        with pytest.raises(imgsvc.CorruptImage, match="different sizes"):
            use(data)
    picture = probe(ByteSource(encoded("jp2").data))
    picture.header_reader = HeaderReader(ByteSource(data), picture.title)
    with pytest.raises(imgsvc.CorruptImage):
        load(picture)


def test_only_the_first_header_of_an_animated_png_counts() -> None:
    frames = [ApngFrame(pixels=np.full((8, 9, 3), value, np.uint8)) for value in (10, 200)]
    data = apng_by_hand(frames)
    huge = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 5000, 5000, 8, 2, 0, 0, 0))
    result = imgsvc.process(data[:33] + huge + data[33:], {"output": {"format": "apng"}})
    assert (result.output.width, result.output.height) == (9, 8)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "svg"])  # it has any size
@pytest.mark.parametrize("field", ["width", "height"])
def test_another_size_than_the_header_told_is_damage(name: str, field: str) -> None:
    """Whatever decodes a format: it is held against the facts that limits and plans rest on."""
    picture = probe(ByteSource(encoded(name).data))
    info = picture.info
    picture.info = attrs.evolve(info, levels=(), **{field: getattr(info, field) // 2})
    with pytest.raises(imgsvc.CorruptImage, match="pixels"):
        load(picture, LoadSettings(all_frames=True))


@pytest.mark.parametrize("more", [-1, 1])
def test_another_number_of_frames_than_the_header_told_is_damage(more: int) -> None:
    animated = [made for made in map(encoded, VARIANTS) if made.animated]
    assert len(animated) > 3
    for made in animated:
        picture = probe(ByteSource(made.data))
        picture.info = attrs.evolve(picture.info, frames=picture.info.frames + more)
        with pytest.raises(imgsvc.CorruptImage):
            load(picture, LoadSettings(all_frames=True))


@functools.cache
def odd_pictures() -> dict[str, bytes]:
    """Every way to scale while decoding, with sides that no power of two divides."""
    photo = photos.astronaut()[:331, :467]
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}"><rect width="9" height="9"/></svg>'
    )
    pyramid = {"pyramid": True, "tile": True, "tile_width": 32, "tile_height": 32}
    return {
        "jpg": pillow(photo, "JPEG"),
        "thin jpg": pillow(photo[:, :9], "JPEG"),
        "webp": pillow(photo, "WEBP"),
        "thin webp": pillow(photo[:3], "WEBP"),
        "jp2": pillow(photo, "JPEG2000"),
        "thin jp2": pillow(photo[:, :40], "JPEG2000"),
        "tiff pages": vips(photo).tiffsave_buffer(**pyramid),
        "tiff directories": vips(photo).tiffsave_buffer(subifd=True, **pyramid),
        "svg": drawing.format(96.49, 63.51).encode(),
        "small svg": drawing.format(0.51, 7.6).encode(),
        "svg in centimetres": drawing.format("1cm", "2.3cm").encode(),
    }


@pytest.mark.parametrize("name", odd_pictures())
def test_what_decoders_scale_has_the_expected_size(name: str) -> None:
    source = ByteSource(odd_pictures()[name])
    picture = probe(source)
    info = picture.info
    for factor in (1.0, 1.4, 2.0, 3.3, 4.0, 7.9, 8.0, 17.0, 64.0, 0.31, 0.07):
        scale = scale_for(info, factor if info.format == "svg" else max(1.0, factor), all_frames=False)
        if min(info.width, info.height) * scale < 1:
            continue
        image = load(picture, LoadSettings(scale=scale))
        assert abs(image.width - info.width * scale) <= max(1, scale)
        assert abs(image.height - info.height * scale) <= max(5, scale)


def pyramid(compression: str) -> bytes:
    tifffile = requires.module("tifffile")
    photo = photos.astronaut()
    levels = [
        np.asarray(Image.fromarray(photo).resize((side, side), Image.Resampling.BOX)) for side in (256, 128)
    ]
    file = io.BytesIO()
    with tifffile.TiffWriter(file) as writer:
        for pixels in (photo, *levels):
            writer.write(pixels, photometric="rgb", compression=compression, tile=(64, 64))
    return file.getvalue()


def test_a_pyramid_that_libvips_cannot_read_is_cropped_alike() -> None:
    request = {
        "crop": {"x": 150, "y": 40, "width": 200, "height": 200},
        "resize": {"width": 50},
        "output": {"format": "png"},
    }
    usual, rare = (
        np.asarray(Image.open(io.BytesIO(imgsvc.process(pyramid(name), request).data or b""))).astype(int)
        for name in ("deflate", "zstd")
    )
    assert imgsvc.inspect(pyramid("zstd")).levels == (), "it is decoded whole"
    assert abs(usual - rare).mean() < 3


def test_a_picture_that_libvips_cannot_read_is_turned_upright() -> None:
    photo = photos.astronaut()[:40, :60]
    file = io.BytesIO()
    turned = [(274, "H", 1, 6, True)]
    requires.module("tifffile").imwrite(file, photo, photometric="rgb", compression="zstd", extratags=turned)
    result = imgsvc.process(file.getvalue(), {"output": {"format": "png"}})
    found = np.asarray(Image.open(io.BytesIO(result.data or b"")))
    assert np.array_equal(found, np.rot90(photo, -1))
