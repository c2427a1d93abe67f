"""Reading: scales, streaming, damage, bombs and the odd dialects of old formats."""

from __future__ import annotations

import gc
import io
import re
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core.errors import CorruptImage, ImgsvcError, UnsupportedFormat
from imgsvc_core.formats import availability
from imgsvc_core.formats.bmp.rle import expand_rle
from imgsvc_core.formats.boundary import translate_errors
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.format import Format
from imgsvc_core.formats.gif.header import read_header
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.settings import LoadSettings
from imgsvc_core.formats.table import FORMATS, OUTPUT_NAMES
from tests.support import encoded as files
from tests.support import handmade, photos, requires
from tests.support.encoded import VARIANTS, encoded
from tests.support.perceptual import distance
from tests.support.photos import Pixels


def read(data: bytes, **settings: Any) -> pyvips.Image:
    source = ByteSource(data)
    return load(probe(source), LoadSettings(**{"sequential": False, **settings}))


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_jpeg_is_decoded_at_a_fraction(factor: int) -> None:
    image = read(handmade.pillow(photos.astronaut(), "JPEG", quality=95), scale=1 / factor)
    assert (image.width, image.height) == (512 // factor, 512 // factor)
    expected = Image.fromarray(photos.astronaut()).resize(image.numpy().shape[:2], Image.Resampling.BOX)
    assert distance(image, np.asarray(expected)) < 0.03


def test_webp_is_decoded_at_any_smaller_size() -> None:
    image = read(handmade.pillow(photos.astronaut(), "WEBP", quality=95), scale=0.3)
    assert (image.width, image.height) == (154, 154)


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0])
def test_svg_is_rendered_at_the_size_asked_for(scale: float) -> None:
    image = read(encoded("svg").data, scale=scale)
    assert (image.width, image.height) == (96 * scale, 64 * scale)
    inside = image.crop(int(20 * scale), int(20 * scale), int(20 * scale), int(20 * scale))
    assert inside.extract_band(0).min() == 255


def test_jpeg2000_is_decoded_at_one_of_its_resolutions() -> None:
    data = handmade.pillow(photos.astronaut(), "JPEG2000", irreversible=False, mct=1, num_resolutions=4)
    info = probe(ByteSource(data)).info
    assert info.levels[:2] == ((256, 256), (128, 128))
    image = read(data, scale=0.25)
    assert (image.width, image.height) == (128, 128)
    expected = Image.fromarray(photos.astronaut()).resize((128, 128), Image.Resampling.BOX)
    assert distance(image, np.asarray(expected)) < 0.05


@pytest.mark.parametrize("bits", [2, 4, 6, 7])
def test_jpeg2000_of_few_bits_is_white_where_its_samples_are_highest(bits: int) -> None:
    samples = np.rint(np.linspace(0, 2**bits - 1, 64 * 64).reshape(64, 64)).astype(np.uint8)
    imagecodecs = requires.module("imagecodecs")
    data = imagecodecs.jpeg2k_encode(samples, level=0, reversible=True, bitspersample=bits, codecformat="jp2")
    expected = samples * (255 / (2**bits - 1))
    assert np.abs(read(bytes(data)).numpy() - expected).max() <= 0.5


@pytest.mark.parametrize("subifd", [False, True])
def test_pyramid_is_read_at_one_of_its_levels(subifd: bool) -> None:
    picture = handmade.vips(photos.astronaut())
    data = picture.tiffsave_buffer(tile=True, pyramid=True, subifd=subifd, tile_width=64, tile_height=64)
    levels = probe(ByteSource(data)).info.levels
    assert (128, 128) in levels
    image = read(data, scale=0.25)
    assert (image.width, image.height) == (128, 128)


@pytest.mark.parametrize("name", ["jpeg", "png", "webp", "gif", "tiff", "avif"])
def test_sequential_reading_gives_the_same_pixels(name: str) -> None:
    data = encoded(name).data
    assert np.array_equal(read(data, sequential=True).numpy(), read(data, sequential=False).numpy())


@pytest.mark.parametrize("name", VARIANTS)
def test_a_file_reads_like_its_bytes(name: str, tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(encoded(name).data)
    source = ByteSource(path)
    image = load(probe(source), LoadSettings(all_frames=True))
    assert np.array_equal(image.numpy(), read(encoded(name).data, all_frames=True).numpy())


@pytest.mark.parametrize("format", ["jpg", "png", "webp", "tiff", "gif", "avif", "heic", "jp2"])
def test_a_file_is_opened_once(format: str, tmp_path: Path) -> None:
    """Nobody finds it by its path after its header was read."""
    path = tmp_path / "picture"
    quality = {} if FORMATS[format].quality is None else {"quality": 95}
    output = {"format": format, **quality, **({"effort": 1} if FORMATS[format].effort else {})}
    imgsvc.process(photos.coffee(), {"output": output}, path.with_suffix(f".{format}"))
    path.with_suffix(f".{format}").rename(path)
    assert path.stat().st_size > 1 << 15  # bytes that are read at once
    picture = probe(ByteSource(path))
    path.unlink()
    assert load(picture).avg() > 0


def test_pixels_outlive_the_source() -> None:
    pictures = [read(bytes(bytearray(encoded("jpeg").data)), sequential=True) for _ in range(30)]
    gc.collect()
    assert [bytearray(10_000) for _ in range(500)]
    assert len({picture.avg() for picture in pictures}) == 1


@pytest.mark.parametrize("name", ["apng", "gif_animated", "webp_animated"])
def test_first_frame_of_an_animation(name: str) -> None:
    image = read(encoded(name).data, all_frames=False)
    assert np.array_equal(image.numpy(), encoded(name).pixels[0])
    assert not image.get_typeof("page-height")
    assert not image.get_typeof("delay")


# Damage


WHOLE = LoadSettings(all_frames=True)
_HALVES_THAT_ARE_WHOLE = {"tiff_pyramid"}  # the full picture comes first, its copies last


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - _HALVES_THAT_ARE_WHOLE))
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_files_are_refused(name: str, share: float) -> None:
    data = encoded(name).data
    picture = probe(ByteSource(data))
    picture.header_reader = HeaderReader(ByteSource(data[: int(len(data) * share)]), picture.title)
    pixels_are_later = name != "svg"  # all of it is header
    with pytest.raises(CorruptImage), translate_errors(picture.name):
        (load(picture, WHOLE) if pixels_are_later else probe(picture.source).load(WHOLE)).copy_memory()


@pytest.mark.parametrize("name", VARIANTS)
def test_damaged_files_raise_nothing_else(name: str) -> None:
    data = encoded(name).data
    random = np.random.default_rng(list(name.encode()))
    for _ in range(12):
        broken = bytearray(data)
        for place in random.integers(len(data) // 10, len(data), 4):
            broken[place] ^= int(random.integers(1, 256))
        picture = probe(ByteSource(data))
        picture.header_reader = HeaderReader(ByteSource(bytes(broken)), picture.title)
        outcome = _outcome(picture)
        assert outcome in ("uchar", "ushort", "float") or re.fullmatch(r"[^\n]+\.", outcome)


def _outcome(picture: Format) -> str:
    """The kind of the samples, or the message of the library's own error."""
    try:
        with translate_errors(picture.name):
            image = load(picture, LoadSettings(all_frames=True)).copy_memory()
    except ImgsvcError as error:
        return error.message
    return str(image.format)


@pytest.mark.parametrize("name", ["png", "apng", "jpeg_progressive"])
def test_flipped_bits_are_found_where_the_format_can_tell(name: str) -> None:
    data = bytearray(encoded(name).data)
    for place in range(len(data) // 2, len(data) // 2 + 64):
        data[place] ^= 0x55
    picture = probe(ByteSource(encoded(name).data))
    picture.header_reader = HeaderReader(ByteSource(bytes(data)), picture.title)
    with pytest.raises(CorruptImage), translate_errors(picture.name):
        load(picture, LoadSettings(all_frames=True)).copy_memory()


@pytest.mark.parametrize("name", ["gif", "gif_animated"])
def test_gif_frames_have_all_of_their_pixels(name: str) -> None:
    """The codes end early: the decoder would leave what is below as it was."""
    data = bytearray(encoded(name).data)
    reader = HeaderReader(ByteSource(bytes(data)), "GIF")
    frame = read_header(reader)[1].frames[-1]
    end_of_codes = (1 << data[frame.data]) + 1
    data[frame.data + 2 : frame.data + 4] = end_of_codes.to_bytes(2, "little")
    with pytest.raises(CorruptImage, match="GIF image is damaged in its frame"):
        read(bytes(data), all_frames=True)


def test_errors_keep_their_cause() -> None:
    data = encoded("png").data
    expected = r"^The PNG image is damaged or truncated: .+\.$"
    with pytest.raises(CorruptImage, match=expected) as caught, translate_errors("png"):
        read(data[: len(data) // 2]).avg()
    assert isinstance(caught.value.__cause__, pyvips.Error)


# Bombs


def _jpeg_segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _many_scans(count: int) -> bytes:
    """A legal progressive JPEG of 64 x 64 gray pixels, refined one bit of one coefficient at a time."""
    parts = [b"\xff\xd8", _jpeg_segment(0xDB, bytes(1) + b"\1" * 64)]
    parts.append(_jpeg_segment(0xC2, struct.pack(">BHHB", 8, 64, 64, 1) + b"\1\x11\0"))
    one_symbol = b"\1" + bytes(15)
    parts.append(_jpeg_segment(0xC4, b"\0" + one_symbol + b"\0"))
    parts.append(_jpeg_segment(0xC4, b"\x10" + one_symbol + b"\0"))
    parts.append(_jpeg_segment(0xDA, b"\1\1\0\0\0\x0d") + bytes(8))
    orders = ((k, bit) for k in range(1, 64) for bit in range(13, -1, -1))
    for (k, bit), _ in zip(orders, range(count - 1), strict=False):
        high = 0 if bit == 13 else bit + 1
        parts.append(_jpeg_segment(0xDA, bytes((1, 1, 0, k, k, high << 4 | bit))) + bytes(8))
    return b"".join((*parts, b"\xff\xd9"))


def test_jpeg_of_many_scans() -> None:
    assert read(_many_scans(100)).avg() == 128
    for count in (101, 800):
        with pytest.raises(UnsupportedFormat, match="more than 100 scans"):
            read(_many_scans(count))


def _many_sequential_scans(count: int) -> bytes:
    """A sequential JPEG of 64 x 64 pixels in three channels, each in scans of its own."""
    parts = [b"\xff\xd8", _jpeg_segment(0xDB, bytes(1) + b"\1" * 64)]
    parts.append(_jpeg_segment(0xC0, struct.pack(">BHHB", 8, 64, 64, 3) + b"\1\x11\0\2\x11\0\3\x11\0"))
    one_symbol = b"\1" + bytes(15)
    parts.append(_jpeg_segment(0xC4, b"\0" + one_symbol + b"\0" + b"\x10" + one_symbol + b"\0"))
    scans = [_jpeg_segment(0xDA, bytes((1, channel, 0, 0, 63, 0))) + bytes(16) for channel in (1, 2, 3)]
    parts += scans * (count // 3)
    return b"".join((*parts, b"\xff\xd9"))


def test_sequential_jpeg_of_many_scans() -> None:
    assert read(_many_sequential_scans(3)).avg() == 128
    with pytest.raises(UnsupportedFormat, match="more than 100 scans"):
        read(_many_sequential_scans(600)).avg()


def test_icon_with_a_huge_png_behind_a_small_entry() -> None:
    """The size that the embedded picture states is what counts."""
    huge = b"\x89PNG\r\n\x1a\n" + handmade.png_chunk(
        b"IHDR", struct.pack(">IIBBBBB", 20_000, 20_000, 8, 6, 0, 0, 0)
    )
    huge += handmade.png_chunk(b"IDAT", b"")
    entry = struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(huge), 22)
    data = struct.pack("<HHH", 0, 1, 1) + entry + huge
    assert probe(ByteSource(data)).info.width == 20_000


def test_svg_reaches_no_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    Image.new("RGB", (10, 10), (255, 0, 0)).save(secret)
    drawing = tmp_path / "drawing.svg"
    drawing.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10">'
        f'<image href="secret.png" width="10" height="10"/>'
        f'<image href="{secret}" width="10" height="10"/></svg>'
    )
    source = ByteSource(drawing)
    image = load(probe(source))
    assert image.extract_band(3).max() == 0


def test_psd_without_a_composite_is_refused() -> None:
    version = handmade.psd_resource(1057, struct.pack(">IB", 1, 0))
    data = handmade.psd_by_hand(np.moveaxis(files.photo(), -1, 0), 3, resources=version)
    for refuse in (imgsvc.inspect, imgsvc.process):
        with pytest.raises(UnsupportedFormat, match="Maximize Compatibility"):
            refuse(data)


@pytest.mark.parametrize(
    "broken", [b"junk" * 4, b"8BIM\x04\x0f\0\0\0\1\0\0abcd", b"8BIM\x04\x0f\xff" + bytes(9)]
)
@pytest.mark.parametrize("sound", [b"", handmade.psd_resource(1039, files.profile())])
def test_broken_resources_refuse_no_psd(broken: bytes, sound: bytes) -> None:
    planes = np.moveaxis(files.photo(), -1, 0)
    data = handmade.psd_by_hand(planes, 3, resources=sound + broken)
    assert np.array_equal(read(data), files.photo())
    source = ByteSource(data)
    assert probe(source).info.profile == bool(sound)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_lab_psd_keeps_its_alpha(dtype: type[np.unsignedinteger[Any]]) -> None:
    white = np.iinfo(dtype).max
    planes = np.full((4, 3, 5), white // 2, dtype)
    planes[3] = np.linspace(0, white, 15).reshape(3, 5)
    data = handmade.psd_by_hand(planes, 9, transparent_layers=True)
    result = imgsvc.process(data, {"output": {"format": "png"}}).to_numpy()
    expected = planes[3] / white
    assert np.abs(result[..., 3] / np.iinfo(result.dtype).max - expected).max() <= 0.6 / 255


@pytest.mark.parametrize("rle", [False, True])
def test_psb_has_longer_numbers_than_psd(rle: bool) -> None:
    data = handmade.psd_by_hand(np.moveaxis(files.photo(), -1, 0), 3, rle=rle, big=True)
    assert np.array_equal(read(data).numpy(), files.photo())


def test_deep_psd_says_in_a_block_that_it_is_transparent() -> None:
    rgba = photos.deep(files.transparent())
    data = handmade.psd_by_hand(np.moveaxis(rgba, -1, 0), 3, block=b"Mt16")
    assert read(data).hasalpha()
    assert not read(handmade.psd_by_hand(np.moveaxis(rgba, -1, 0), 3, block=b"Patt")).hasalpha()


def _psd_of_all_compressions(planes: Pixels) -> list[bytes]:
    raw, runs = (handmade.psd_by_hand(planes, 3, rle=rle) for rle in (False, True))
    start = raw[: -planes.size - 2]
    steps = np.diff(planes, axis=2, prepend=np.zeros((*planes.shape[:2], 1), np.uint8))
    zipped = [zlib.compress(stored.tobytes()) for stored in (planes, steps.astype(np.uint8))]
    return [raw, runs, start + b"\0\2" + zipped[0], start + b"\0\3" + zipped[1]]


def avif_premultiplied(rgba: Pixels) -> bytes:
    file = io.BytesIO()
    Image.fromarray(rgba).save(file, "AVIF", quality=95, alpha_premultiplied=True)
    return file.getvalue()


def heic_premultiplied(rgba: Pixels) -> bytes:
    stored = Image.fromarray(rgba).convert("RGBa")
    file = io.BytesIO()
    heif = requires.module("pillow_heif").from_bytes(stored.mode, stored.size, stored.tobytes())
    heif.save(file, quality=95)
    return file.getvalue()


def jp2_premultiplied(rgba: Pixels) -> bytes:
    stored = np.asarray(Image.fromarray(rgba).convert("RGBa"))
    data = handmade.pillow(stored, "JPEG2000")
    alpha, premultiplied = (struct.pack(">HHH", 3, kind, 0) for kind in (1, 2))
    assert data.count(alpha) == 1
    return data.replace(alpha, premultiplied)


@pytest.mark.parametrize("make", [avif_premultiplied, heic_premultiplied, jp2_premultiplied])
def test_premultiplied_colors_become_straight(make: Callable[[Pixels], bytes]) -> None:
    rgba = np.full((64, 64, 4), (200, 100, 40, 255), np.uint8)
    rgba[..., 3] = np.linspace(60, 255, 64)
    found = read(make(rgba)).numpy()
    assert np.abs(found.astype(int) - rgba).max() < 10


def test_another_picture_that_is_premultiplied_changes_nothing() -> None:
    rgba = np.full((64, 64, 4), (100, 50, 20, 128), np.uint8)
    data = avif_premultiplied(rgba)
    assert data.count(b"prem\0\1") == 1
    of_other, of_none = (read(data.replace(b"prem\0\1", box)) for box in (b"prem\0\2", b"none\0\1"))
    assert np.array_equal(of_other.numpy(), of_none.numpy())


def test_psd_channels_that_do_not_count_cost_nothing() -> None:
    height, width = 200, 300
    channels = np.arange(56 * height * width, dtype=np.uint32).reshape(56, height, width) // 7 % 251
    planes = channels.astype(np.uint8)
    for data in _psd_of_all_compressions(planes):
        source = ByteSource(data)
        picture = probe(source)
        load(picture)  # imports modules
        tracemalloc.start()
        image = load(picture)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert np.array_equal(image.numpy(), np.moveaxis(planes[:3], 0, -1))
        assert peak < len(data) + 20 * height * width
        with pytest.raises(CorruptImage):
            read(data[: -len(data) * 55 // 56])


def test_webp_without_its_flag_keeps_the_alpha_of_its_data(tmp_path: Path) -> None:
    """libvips goes by the flag alone, libwebp and browsers by the data."""
    pixels = files.transparent()
    still = handmade.pillow(pixels, "WEBP", lossless=True, exact=True)
    data = still[still.index(b"VP8L") :]
    size = b"".join((side - 1).to_bytes(3, "little") for side in pixels.shape[1::-1])
    body = b"VP8X" + struct.pack("<II", 10, 0) + size + data
    whole = b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body
    path = tmp_path / "still.webp"
    path.write_bytes(whole)
    for source in (ByteSource(whole), ByteSource(path)):
        assert np.array_equal(load(probe(source)).numpy(), pixels)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("alpha", [True, False])
def test_reserved_flags_of_webp_are_ignored(alpha: bool) -> None:
    """libwebp and browsers refuse them, though readers must not (RFC 9649)."""
    pixels = files.transparent() if alpha else photos.astronaut()[:40, :50]
    still = handmade.pillow(pixels, "WEBP", lossless=True, exact=True)
    size = b"".join((side - 1).to_bytes(3, "little") for side in pixels.shape[1::-1])
    body = b"VP8X" + struct.pack("<II", 10, 0xFFFFFFC1) + size + still[still.index(b"VP8L") :]
    whole = b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body
    assert np.array_equal(read(whole).numpy(), pixels)


# Gray in limited range


def _gray_ramp(bits: int) -> Pixels:
    """Black to white in so many bits, in the full range."""
    return np.tile(np.rint(np.linspace(0, 2**bits - 1, 64)), (64, 1)).astype(np.uint16)


def _in_limited_range(ramp: Pixels, bits: int) -> Pixels:
    return np.rint((16 + ramp / (2**bits - 1) * 219) * 2 ** (bits - 8)).astype(np.uint16)


def _stated_as_limited(data: bytes) -> bytes:
    """The file with another range in its properties, which count before those of the stream."""
    head = data.index(b"nclx")
    return data[: head + 10] + b"\0" + data[head + 11 :]


def _as_heic(samples: Pixels, bits: int) -> bytes:
    pillow_heif = requires.module("pillow_heif")
    file = io.BytesIO()
    pixels = samples.astype(np.uint8) if bits == 8 else samples << (16 - bits)
    mode = "L" if bits == 8 else "L;16"
    pillow_heif.from_bytes(mode, samples.shape[::-1], pixels.tobytes()).save(file, quality=100)
    return file.getvalue()


def _as_avif(samples: Pixels, bits: int) -> bytes:
    imagecodecs = requires.module("imagecodecs")
    pixels = samples.astype(np.uint8) if bits == 8 else samples
    data: bytes = imagecodecs.avif_encode(pixels, level=100, pixelformat="400", bitspersample=bits)
    return data


@pytest.mark.parametrize(
    ("encode", "bits"), [(_as_heic, 8), (_as_heic, 10), *((_as_avif, n) for n in (8, 10, 12))]
)
def test_gray_of_limited_range_comes_out_in_full_range(
    encode: Callable[[Pixels, int], bytes], bits: int
) -> None:
    """libheif delivers the samples as they are stored (libheif#580)."""
    ramp = _gray_ramp(bits)
    whole = read(encode(ramp, bits)).numpy().astype(float)
    limited = read(_stated_as_limited(encode(_in_limited_range(ramp, bits), bits))).numpy().astype(float)
    white = 255 if bits == 8 else 65_535
    assert np.abs(whole - ramp * (white / (2**bits - 1))).max() <= 0.012 * white
    assert np.abs(limited - whole).max() <= 0.015 * white
    assert (limited.min(), limited.max()) == (0, white)


@pytest.mark.parametrize("stated", [b"colrnclx", b"freenclx"], ids=["stated by the file", "by its picture"])
@pytest.mark.parametrize("range_", ["limited", "full"])
def test_the_range_of_gray_with_alpha(range_: str, stated: bytes) -> None:
    ramp = Image.fromarray(_gray_ramp(8).astype(np.uint8))
    transparent = Image.merge("LA", (ramp, ramp))
    data = handmade.pillow(transparent, "AVIF", quality=100, subsampling="4:0:0", range=range_)
    found = read(data.replace(b"colrnclx", stated)).numpy().astype(int)
    assert np.abs(found - np.asarray(ramp)[..., None]).max() <= 2


# BMP dialects


def _bits(indices: Pixels, bits: int) -> bytes:
    """Rows of palette indices, bottom up, padded to four bytes."""
    planes = (indices[::-1, :, None] >> np.arange(bits - 1, -1, -1)) & 1
    packed = np.packbits(planes.reshape(len(indices), -1).astype(np.uint8), axis=1)
    return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 4))).tobytes()


_PALETTE = np.array([[0, 0, 0], [255, 0, 0], [0, 128, 0], [40, 50, 255]], np.uint8)
_INDICES = (np.add.outer(np.arange(7), np.arange(13)) % 4).astype(np.uint8)
_QUADS = np.pad(_PALETTE[:, ::-1], ((0, 0), (0, 1))).tobytes()


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_bmp_palettes(bits: int) -> None:
    data = handmade.bmp_by_hand(_bits(_INDICES, bits), 13, 7, bits, palette=_QUADS)
    assert np.array_equal(read(data).numpy(), _PALETTE[_INDICES])


def test_bmp_top_down() -> None:
    data = handmade.bmp_by_hand(_bits(_INDICES[::-1], 8), 13, -7, 8, palette=_QUADS)
    assert np.array_equal(read(data).numpy(), _PALETTE[_INDICES])


@pytest.mark.parametrize("size", [12, 16, 40, 64])
def test_os2_headers(size: int) -> None:
    if size == 12:
        header = struct.pack("<IHHHH", 12, 13, 7, 1, 2) + _PALETTE[:, ::-1].tobytes()
    else:
        fields = struct.pack("<IiiHHIIiiII", size, 13, 7, 1, 2, 0, 0, 0, 0, 4 if size >= 40 else 0, 0)
        header = fields.ljust(size, b"\0")[:size] + _QUADS
    rows = _bits(_INDICES, 2)
    start = 14 + len(header)
    data = b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + header + rows
    assert np.array_equal(read(data).numpy(), _PALETTE[_INDICES])


def test_bmp_bit_fields_of_any_width() -> None:
    """Ten bits a channel, in an order of its own."""
    values = np.arange(13 * 7 * 3).reshape(7, 13, 3) * 1023 // (13 * 7 * 3)
    words = (values[..., 0] | values[..., 1] << 10 | values[..., 2] << 20).astype("<u4")
    masks = struct.pack("<III", 0x3FF, 0x3FF << 10, 0x3FF << 20)
    rows = words[::-1].tobytes()
    data = handmade.bmp_by_hand(rows, 13, 7, 32, 3, palette=masks)
    data = data[:46] + struct.pack("<I", 0) + data[50:]
    assert np.array_equal(read(data).numpy(), np.rint(values * 255 / 1023))


def test_bmp_bit_fields_end_with_the_pixel() -> None:
    """What masks say beyond the bits of a pixel is ignored."""
    rows = np.full((2, 2), 0b11111_000000_00001, "<u2").tobytes()
    data, wide = (
        handmade.bmp_by_hand(
            rows, 2, 2, 16, 3, palette=struct.pack("<III", high | 0xF800, 0x7E0, high | 0x1F)
        )
        for high in (0, 0x8001_0000)
    )
    assert np.array_equal(pixels_in(wide), pixels_in(data))


def pixels_in(data: bytes) -> Any:
    source = ByteSource(data)
    return load(probe(source)).numpy()


def test_bmp_rle4_with_jumps() -> None:
    body = bytes((5, 0x12)) + b"\0\0" + bytes((0, 2, 1, 1)) + bytes((0, 5, 0x12, 0x31, 0x20, 0)) + b"\0\1"
    data = handmade.bmp_by_hand(body, 8, 4, 4, 2, palette=_QUADS)
    rows = np.zeros((4, 8), np.uint8)
    rows[0, :5] = (1, 2, 1, 2, 1)
    rows[2, 1:6] = (1, 2, 3, 1, 2)
    assert np.array_equal(read(data).numpy(), _PALETTE[rows[::-1]])


@pytest.mark.parametrize("count", range(3, 10))
def test_runs_without_repetition_end_at_even_bytes(count: int) -> None:
    for bits, stored in ((8, bytes(range(count))), (4, bytes.fromhex("0123456789"[: count + count % 2]))):
        run = stored + bytes(len(stored) % 2)
        rows = expand_rle(bytes((0, count)) + run + b"\1\xee\0\1", count + 1, 1, bits)
        assert rows.tolist() == [[*range(count), 0xEE if bits == 8 else 0xE]]


def test_bmp_rle24_of_os2() -> None:
    body = b"".join(bytes((13, *_PALETTE[row % 4, ::-1])) + b"\0\0" for row in range(7)) + b"\0\1"
    header = struct.pack("<IiiHHI", 64, 13, 7, 1, 24, 4).ljust(64, b"\0")
    data = b"BM" + struct.pack("<IHHI", 78 + len(body), 0, 0, 78) + header + body
    expected = np.repeat(_PALETTE[np.arange(7) % 4][::-1, None], 13, axis=1)
    assert np.array_equal(read(data).numpy(), expected)


@pytest.mark.parametrize("stated", [0, 5, 300, 2**32 - 1])
def test_bmp_palettes_end_where_the_pixels_start(stated: int) -> None:
    data = bytearray(handmade.bmp_by_hand(_bits(_INDICES, 8), 13, 7, 8, palette=_QUADS))
    data[46:50] = struct.pack("<I", stated)
    assert np.array_equal(read(bytes(data)).numpy(), _PALETTE[_INDICES])


def test_bmp_colors_that_are_stored_only_in_part_are_black() -> None:
    rows = np.full((7, 16), 3, np.uint8).tobytes()
    data = handmade.bmp_by_hand(rows, 13, 7, 8, palette=_QUADS[:-1])
    assert not read(data[:46] + struct.pack("<I", 4) + data[50:]).numpy().any()


@pytest.mark.parametrize("planes", [0, 3, 65_535])
@pytest.mark.parametrize("core", [True, False])
def test_the_planes_of_bmp_are_ignored(planes: int, core: bool) -> None:
    rows = _bits(_INDICES, 8)
    if core:
        header = struct.pack("<IHHHH", 12, 13, 7, planes, 8) + _PALETTE[:, ::-1].tobytes()
        data = b"BM" + struct.pack("<IHHI", 0, 0, 0, 14 + len(header)) + header + rows
    else:
        data = handmade.bmp_by_hand(rows, 13, 7, 8, palette=_QUADS)
        data = data[:26] + struct.pack("<H", planes) + data[28:]
    assert np.array_equal(read(data).numpy(), _PALETTE[_INDICES])


@pytest.mark.parametrize("pixels_at", [0, 14, 53])
def test_bmp_pixels_follow_the_palette_unless_the_file_tells_where_they_are(pixels_at: int) -> None:
    data = bytearray(handmade.bmp_by_hand(_bits(_INDICES, 8), 13, 7, 8, palette=_QUADS))
    data[10:14] = struct.pack("<I", pixels_at)
    assert np.array_equal(read(bytes(data)).numpy(), _PALETTE[_INDICES])


def _bgra(alpha: int | Pixels) -> bytes:
    colors = files.photo()[::-1, :, ::-1]
    return np.dstack((colors, np.broadcast_to(np.uint8(alpha), colors.shape[:2]))).tobytes()


_MASKS_OF_BGRA = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)


@pytest.mark.parametrize("header_size", [56, 108, 124])
def test_bmp_alpha_mask_counts_without_bit_fields(header_size: int) -> None:
    """What browsers put on the clipboard (image-rs#2932)."""
    height, width = files.photo().shape[:2]
    alpha = np.tile(np.linspace(0, 255, width).astype(np.uint8), (height, 1))
    rows = _bgra(alpha[::-1])
    data = handmade.bmp_by_hand(rows, width, height, 32, extra=_MASKS_OF_BGRA, header_size=header_size)
    source = ByteSource(data)
    assert probe(source).info.alpha
    assert np.array_equal(load(probe(source)).numpy(), np.dstack((files.photo(), alpha)))


@pytest.mark.parametrize(("header_size", "alpha"), [(40, 0xFF000000), (124, 0), (124, 0xFF0000)])
def test_bmp_has_no_alpha_without_a_mask_of_its_own(header_size: int, alpha: int) -> None:
    masks = struct.pack("<IIII", 0, 0, 0, alpha) if header_size > 40 else b""
    height, width = files.photo().shape[:2]
    data = handmade.bmp_by_hand(_bgra(7), width, height, 32, extra=masks, header_size=header_size)
    source = ByteSource(data)
    assert not probe(source).info.alpha
    assert np.array_equal(load(probe(source)).numpy(), files.photo())


@pytest.mark.parametrize("compression", [0, 3])
def test_bmp_alpha_of_nothing_shows_the_picture(compression: int) -> None:
    """Writers leave the byte unset (image-rs#539)."""
    height, width = files.photo().shape[:2]
    data = handmade.bmp_by_hand(
        _bgra(0), width, height, 32, compression, extra=_MASKS_OF_BGRA, header_size=124
    )
    source = ByteSource(data)
    assert np.array_equal(load(probe(source)).numpy(), files.photo())


def test_bmp_profile() -> None:
    data = bytearray(handmade.bmp_by_hand(bytes(40 * 7), 13, 7, 24, header_size=124))
    data[14 + 56 : 14 + 60] = b"DEBM"
    data[14 + 112 : 14 + 120] = struct.pack("<II", len(data) - 14, len(files.profile()))
    data += files.profile()
    assert imgsvc.inspect(bytes(data)).profile
    image = read(bytes(data))
    assert bytes(image.get("icc-profile-data")) == files.profile()


@pytest.mark.parametrize(
    ("bits", "width", "padding"), [(24, 5, 1), (24, 3, 3), (8, 6, 2), (1, 9, 2), (16, 3, 2)]
)
def test_bmp_without_the_padding_of_its_last_row(bits: int, width: int, padding: int) -> None:
    rows = bytes(range(1, 1 + (width * bits + 31) // 32 * 4 * 2))
    palette = bytes(range(8)) * (1 << bits >> 1) if bits <= 8 else b""
    whole = handmade.bmp_by_hand(rows, width, 2, bits, palette=palette)
    pixels = read(whole).numpy()
    for missing in range(1, padding + 1):
        assert np.array_equal(read(whole[:-missing]).numpy(), pixels)
    with pytest.raises(CorruptImage, match="truncated"):
        read(whole[: -padding - 1])


def test_jp2_of_high_throughput_states_more_capabilities() -> None:
    data = encoded("jp2").data
    style = data.index(b"\xff\x52\x00\x0c")
    capable = data[:style] + b"\xff\x50\x00\x06\x00\x00\x00\x00" + data[style:]
    assert np.array_equal(read(capable[data.index(b"\xff\x4f\xff\x51") :]).numpy(), files.photo())


@pytest.mark.parametrize("bands", [3, 4])
def test_jp2_with_channels_of_any_step(bands: int) -> None:
    """Decoders that give exact samples know only the usual subsampling of color."""
    color = [200, 100, 50, 250][:bands]
    pixels = np.full((64, 96, bands), color, np.uint8)
    stored = handmade.pillow(Image.fromarray(pixels), "JPEG2000", no_jp2=True, irreversible=False, mct=0)
    whole = bytearray(stored)
    whole[8:16] = whole[24:32] = struct.pack(">II", 96 * 3, 64 * 3)
    for number in range(bands):
        whole[43 + 3 * number : 45 + 3 * number] = b"\3\3"
    found = read(bytes(whole)).numpy()
    assert found.shape[:2] == (192, 288)
    assert (found.reshape(-1, bands) == color).all()


def test_icon_with_a_truncated_mask() -> None:
    whole = encoded("ico_bitmap").data
    mask = 12 * files.HEIGHT
    with pytest.raises(CorruptImage, match="mask"):
        read(whole[:-1])
    with pytest.raises(CorruptImage, match="mask"):
        read(whole[:-mask])
    without = bytearray(whole[:-mask])
    without[14:18] = struct.pack("<I", len(without) - 22)
    assert read(bytes(without))[3].min() == 255


def test_bitmaps_of_icons_have_alpha_in_their_fourth_byte() -> None:
    picture = Image.fromarray(files.transparent())
    data = handmade.pillow(picture, "ICO", sizes=[(files.WIDTH, files.HEIGHT)], bitmap_format="bmp")
    assert np.array_equal(read(data).numpy(), files.transparent())


def test_icon_whose_directory_states_too_few_bytes() -> None:
    whole = encoded("ico_bitmap").data
    short = whole[:14] + struct.pack("<I", 100) + whole[18:]
    assert np.array_equal(read(short).numpy(), read(whole).numpy())
    with pytest.raises(CorruptImage, match="truncated"):
        read(short[:2000])


# What is there and what is not


def test_every_format_of_the_table_is_readable_here() -> None:
    assert [name for name in FORMATS if not availability.readable(name)] == []
    assert [name for name in OUTPUT_NAMES if not availability.writable(name)] == []


def test_input_formats_say_why_they_cannot_be_written() -> None:
    support = availability.write_support("psd")
    assert not support
    assert support.reason == "PSD is an input format only."


def test_missing_codec_names_the_extra() -> None:
    """In a fresh interpreter where pillow-heif cannot be found."""
    script = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pillow_heif" else find(name, package)
from imgsvc_core.formats import availability
from imgsvc_core.errors import MissingDependency
print(availability.readable("heic"), availability.write_support("heic").extra)
try:
    availability.reader_backend("heic")
except MissingDependency as error:
    print(error.message)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout.splitlines() == [
        "False heic",
        "HEIC cannot be read here; install it with: pip install 'imgsvc[heic]'.",
    ], result.stderr
