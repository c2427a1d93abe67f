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
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import pyvips
from PIL import Image

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs import availability
from imgsvc_core.codecs.boundary import translate_errors
from imgsvc_core.codecs.headers.directory import read_first_directory
from imgsvc_core.codecs.headers.gif import read_gif
from imgsvc_core.codecs.headers.reader import HeaderReader
from imgsvc_core.codecs.probe import probe
from imgsvc_core.codecs.readers import load
from imgsvc_core.codecs.settings import LoadSettings
from imgsvc_core.codecs.table import FORMATS, OUTPUT_NAMES
from imgsvc_core.errors import CorruptImage, ImgsvcError, UnsupportedFormat
from imgsvc_core.info import ImageInfo
from tests.support import encoded as files
from tests.support import handmade, photos, requires
from tests.support.encoded import VARIANTS, encoded
from tests.support.perceptual import distance
from tests.support.photos import Pixels


def read(data: bytes, **settings: Any) -> pyvips.Image:
    source = ByteSource(data)
    return load(source, probe(source), LoadSettings(**{"sequential": False, **settings}))


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
def test_jpeg_is_decoded_at_a_fraction(factor: int) -> None:
    image = read(handmade.pillow(photos.astronaut(), "JPEG", quality=95), scale=1 / factor)
    assert (image.width, image.height) == (512 // factor, 512 // factor)
    expected = Image.fromarray(photos.astronaut()).resize(image.numpy().shape[:2], Image.Resampling.BOX)
    assert distance(image, np.asarray(expected)) < 0.03


def test_webp_is_decoded_at_any_smaller_size() -> None:
    image = read(handmade.pillow(photos.astronaut(), "WEBP", quality=95), scale=0.3)
    assert (image.width, image.height) == (154, 154)


@pytest.mark.parametrize("all_frames", [False, True])
def test_webp_animation_comes_at_full_size(all_frames: bool) -> None:
    image = read(encoded("webp_animated").data, scale=0.5, all_frames=all_frames)
    assert (image.width, image.get_page_height()) == (96, 64)


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0])
def test_svg_is_rendered_at_the_size_asked_for(scale: float) -> None:
    image = read(encoded("svg").data, scale=scale)
    assert (image.width, image.height) == (96 * scale, 64 * scale)
    inside = image.crop(int(20 * scale), int(20 * scale), int(20 * scale), int(20 * scale))
    assert inside.extract_band(0).min() == 255


def test_jpeg2000_is_decoded_at_one_of_its_resolutions() -> None:
    data = handmade.pillow(photos.astronaut(), "JPEG2000", irreversible=False, mct=1, num_resolutions=4)
    info = probe(ByteSource(data))
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
    levels = probe(ByteSource(data)).levels
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
    image = load(source, probe(source), LoadSettings(all_frames=True))
    assert np.array_equal(image.numpy(), read(encoded(name).data, all_frames=True).numpy())


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


_HALVES_THAT_ARE_WHOLE = {"tiff_pyramid"}  # the full picture comes first, its copies last


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - _HALVES_THAT_ARE_WHOLE))
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_files_are_refused(name: str, share: float) -> None:
    data = encoded(name).data
    info = probe(ByteSource(data))
    cut = ByteSource(data[: int(len(data) * share)])
    with pytest.raises(CorruptImage), translate_errors(info.format):
        load(cut, info, LoadSettings(all_frames=True)).copy_memory()


@pytest.mark.parametrize("name", VARIANTS)
def test_damaged_files_raise_nothing_else(name: str) -> None:
    data = encoded(name).data
    info = probe(ByteSource(data))
    random = np.random.default_rng(list(name.encode()))
    for _ in range(12):
        broken = bytearray(data)
        for place in random.integers(len(data) // 10, len(data), 4):
            broken[place] ^= int(random.integers(1, 256))
        outcome = _outcome(bytes(broken), info)
        assert outcome in ("uchar", "ushort", "float") or re.fullmatch(r"[^\n]+\.", outcome)


def _outcome(data: bytes, info: ImageInfo) -> str:
    """The kind of the samples, or the message of the library's own error."""
    try:
        with translate_errors(info.format):
            image = load(ByteSource(data), info, LoadSettings(all_frames=True)).copy_memory()
    except ImgsvcError as error:
        return error.message
    return str(image.format)


@pytest.mark.parametrize("name", ["png", "apng", "jpeg_progressive"])
def test_flipped_bits_are_found_where_the_format_can_tell(name: str) -> None:
    data = bytearray(encoded(name).data)
    for place in range(len(data) // 2, len(data) // 2 + 64):
        data[place] ^= 0x55
    info = probe(ByteSource(encoded(name).data))
    with pytest.raises(CorruptImage), translate_errors(info.format):
        load(ByteSource(bytes(data)), info, LoadSettings(all_frames=True)).copy_memory()


@pytest.mark.parametrize("name", ["gif", "gif_animated"])
def test_gif_frames_have_all_of_their_pixels(name: str) -> None:
    """The codes end early: the decoder would leave what is below as it was."""
    data = bytearray(encoded(name).data)
    reader = HeaderReader(ByteSource(bytes(data)), "GIF")
    frame = read_gif(reader).frames[-1]
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
    assert read(_many_scans(60)).avg() == 128
    with pytest.raises(CorruptImage, match="800 scans"):
        read(_many_scans(800))


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
    with pytest.raises(CorruptImage, match="600 scans"):
        read(_many_sequential_scans(600)).avg()


def test_icon_with_a_huge_png_behind_a_small_entry() -> None:
    """The size that the embedded picture states is what counts, and it must be the one that was checked."""
    huge = b"\x89PNG\r\n\x1a\n" + handmade.png_chunk(
        b"IHDR", struct.pack(">IIBBBBB", 20_000, 20_000, 8, 6, 0, 0, 0)
    )
    entry = struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(huge), 22)
    data = struct.pack("<HHH", 0, 1, 1) + entry + huge
    info = ImageInfo(format="ico", width=16, height=16, colorspace="srgb", bytes=len(data))
    with pytest.raises(CorruptImage, match="16 x 16"):
        load(ByteSource(data), info)


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
    image = load(source, probe(source))
    assert image.extract_band(3).max() == 0


def test_psd_without_a_composite_is_refused() -> None:
    version = handmade.psd_resource(1057, struct.pack(">IB", 1, 0))
    data = handmade.psd_by_hand(np.moveaxis(files.photo(), -1, 0), 3, resources=version)
    with pytest.raises(UnsupportedFormat, match="Maximize Compatibility"):
        read(data)


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


def test_psd_channels_that_do_not_count_cost_nothing() -> None:
    height, width = 200, 300
    channels = np.arange(56 * height * width, dtype=np.uint32).reshape(56, height, width) // 7 % 251
    planes = channels.astype(np.uint8)
    for data in _psd_of_all_compressions(planes):
        source = ByteSource(data)
        info = probe(source)
        tracemalloc.start()
        image = load(source, info)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert np.array_equal(image.numpy(), np.moveaxis(planes[:3], 0, -1))
        assert peak < len(data) + 20 * height * width
        with pytest.raises(CorruptImage):
            read(data[: -len(data) * 55 // 56])


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


def test_bmp_rle4_with_jumps() -> None:
    body = bytes((5, 0x12)) + b"\0\0" + bytes((0, 2, 1, 1)) + bytes((0, 5, 0x12, 0x31, 0x20, 0)) + b"\0\1"
    data = handmade.bmp_by_hand(body, 8, 4, 4, 2, palette=_QUADS)
    rows = np.zeros((4, 8), np.uint8)
    rows[0, :5] = (1, 2, 1, 2, 1)
    rows[2, 1:6] = (1, 2, 3, 1, 2)
    assert np.array_equal(read(data).numpy(), _PALETTE[rows[::-1]])


def test_bmp_rle24_of_os2() -> None:
    body = b"".join(bytes((13, *_PALETTE[row % 4, ::-1])) + b"\0\0" for row in range(7)) + b"\0\1"
    header = struct.pack("<IiiHHI", 64, 13, 7, 1, 24, 4).ljust(64, b"\0")
    data = b"BM" + struct.pack("<IHHI", 78 + len(body), 0, 0, 78) + header + body
    expected = np.repeat(_PALETTE[np.arange(7) % 4][::-1, None], 13, axis=1)
    assert np.array_equal(read(data).numpy(), expected)


@pytest.mark.parametrize("pixels_at", [55, 60, 69])
def test_bmp_pixels_do_not_start_inside_of_the_palette(pixels_at: int) -> None:
    data = bytearray(handmade.bmp_by_hand(_bits(_INDICES, 8), 13, 7, 8, palette=_QUADS))
    data[10:14] = struct.pack("<I", pixels_at)
    with pytest.raises(CorruptImage, match="inside of its palette"):
        read(bytes(data))


@pytest.mark.parametrize("pixels_at", [0, 14, 53])
def test_bmp_pixels_follow_the_palette_unless_the_file_tells_where_they_are(pixels_at: int) -> None:
    data = bytearray(handmade.bmp_by_hand(_bits(_INDICES, 8), 13, 7, 8, palette=_QUADS))
    data[10:14] = struct.pack("<I", pixels_at)
    assert np.array_equal(read(bytes(data)).numpy(), _PALETTE[_INDICES])


def test_bmp_profile() -> None:
    data = bytearray(handmade.bmp_by_hand(bytes(40 * 7), 13, 7, 24, header_size=124))
    data[14 + 56 : 14 + 60] = b"DEBM"
    data[14 + 112 : 14 + 120] = struct.pack("<II", len(data) - 14, len(files.profile()))
    image = read(bytes(data) + files.profile())
    assert bytes(image.get("icc-profile-data")) == files.profile()


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


# TIFF dialects


@pytest.mark.parametrize("compression", ["lzma", "zstd", "jpeg", "packbits", "tiff_adobe_deflate"])
def test_tiff_compressions_are_right_or_refused(compression: str) -> None:
    try:
        data = handmade.pillow(files.photo(), "TIFF", compression=compression)
    except OSError as error:
        pytest.skip(f"Pillow's libtiff cannot write it: {error}")
    assert distance(read(data), files.photo()) <= (0.02 if compression == "jpeg" else 0)


@pytest.mark.parametrize("compression", ["lzma", "zstd"])
def test_damage_in_a_tiff_of_rare_compression_is_told_as_damage(compression: str) -> None:
    try:
        data = handmade.pillow(files.photo(), "TIFF", compression=compression)
    except OSError as error:
        pytest.skip(f"Pillow's libtiff cannot write it: {error}")
    middle = len(data) // 2
    with pytest.raises(CorruptImage, match="TIFF image is damaged"):
        read(data[:middle] + bytes(64) + data[middle + 64 :])


@pytest.mark.parametrize("compression", ["webp", "jpegxl", "jpeg2000"])
def test_tiff_compressions_that_nothing_reads_are_refused(compression: str, tmp_path: Path) -> None:
    import tifffile

    path = tmp_path / "picture.tif"
    tifffile.imwrite(path, files.photo(), photometric="rgb", compression=compression)
    source = ByteSource(path)
    with pytest.raises(UnsupportedFormat, match="compression"):
        load(source, probe(source)).avg()


_SAMPLES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32"]


def _ramp(sample: str) -> Pixels:
    """4 x 8 steps from the lowest to the highest value of a type; of real numbers, from 0 to 1."""
    steps = np.linspace(0, 1, 32).reshape(4, 8)
    kind = np.dtype(sample)
    if kind.kind == "f":
        return steps.astype(kind)
    limits = np.iinfo(kind)
    return np.rint(steps * (int(limits.max) - int(limits.min)) + int(limits.min)).astype(kind)


def _mapped(samples: Pixels) -> Pixels:
    """What the rule makes of samples: the whole range of whole numbers, linear light of real ones."""
    if samples.dtype.kind == "f":
        linear = samples.astype(np.float64)
        curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
        return np.rint(curved * 65535)
    limits = np.iinfo(samples.dtype)
    share = (samples.astype(np.float64) - limits.min) / (int(limits.max) - int(limits.min))
    return np.rint(share * (255 if samples.itemsize == 1 else 65535))


def _negative(samples: Pixels) -> Pixels:
    """What samples mean if white is the lowest: of real numbers 1 - x in linear light."""
    return 1 - samples.astype(np.float64) if samples.dtype.kind == "f" else ~samples


def _tifffile(samples: Pixels, **options: Any) -> bytes:
    file = io.BytesIO()
    requires.module("tifffile").imwrite(file, samples, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("sample", "compression"),
    [
        (sample, compression)
        for sample in _SAMPLES
        for compression in ("none", "deflate", "zstd")
        if (sample, compression) != ("float16", "zstd")
    ],
)
def test_tiff_samples_of_every_type(sample: str, compression: str) -> None:
    """Zstandard is read by Pillow, which does not know float16; the others are read by libvips."""
    samples = _ramp(sample)
    found = read(_tifffile(samples, photometric="minisblack", compression=compression)).numpy()
    assert found.dtype == (np.uint8 if samples.itemsize == 1 else np.uint16)
    assert np.abs(found - _mapped(samples)).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("sample", _SAMPLES)
def test_tiff_samples_of_every_type_in_color(sample: str) -> None:
    samples = np.stack((_ramp(sample), _ramp(sample)[::-1], _ramp(sample)[:, ::-1]), axis=2)
    found = read(_tifffile(samples, photometric="rgb")).numpy()
    assert np.abs(found - _mapped(samples)).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("sample", _SAMPLES)
def test_tiff_samples_of_every_type_with_white_as_the_lowest(sample: str) -> None:
    samples = _ramp(sample)
    found = read(_tifffile(samples, photometric="miniswhite")).numpy()
    assert np.abs(found - _mapped(_negative(samples))).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("photometric", ["minisblack", "miniswhite"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("sample", _SAMPLES)
def test_tiff_samples_in_zstandard_are_right_or_refused(sample: str, order: str, photometric: str) -> None:
    samples = _ramp(sample)
    data = _tifffile(samples, photometric=photometric, byteorder=order, compression="zstd")
    swapped = order == ">" and sample in ("int16", "uint32", "int32", "float32")
    negative = photometric == "miniswhite" and sample not in ("uint8", "float32")
    if sample == "float16" or swapped or negative:
        with pytest.raises(UnsupportedFormat, match="save it with deflate"):
            read(data)
    else:
        meant = _negative(samples) if photometric == "miniswhite" else samples
        assert np.abs(read(data).numpy() - _mapped(meant)).max() <= (5 if sample[0] == "f" else 1)


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "jpeg"])
def test_ycbcr_in_tiff_becomes_rgb(compression: str | None) -> None:
    picture = Image.fromarray(files.photo()).convert("YCbCr")
    data = handmade.pillow(picture, "TIFF", compression=compression)
    assert distance(read(data), files.photo()) < 0.02


@pytest.mark.parametrize("bits", [1, 2, 4, 12])
def test_tiff_samples_of_few_bits(bits: int) -> None:
    steps = np.rint(np.linspace(0, 1, 32).reshape(4, 8) * (2**bits - 1))
    data = _tifffile(
        steps.astype(np.uint8 if bits < 8 else np.uint16), photometric="minisblack", bitspersample=bits
    )
    found = read(data).numpy()
    assert np.abs(found / np.iinfo(found.dtype).max - steps / (2**bits - 1)).max() < 1e-4


@pytest.mark.parametrize("sample", ["int64", "uint64", "float64", "complex64"])
def test_tiff_samples_that_nothing_reads_are_not_called_damaged(sample: str) -> None:
    data = _tifffile(np.zeros((4, 8), sample), photometric="minisblack")
    with pytest.raises(UnsupportedFormat, match=r"64 bits, .* save it with 8 or 16 bits"):
        read(data)


def test_tiff_samples_that_pillow_does_not_read_are_not_called_damaged() -> None:
    with pytest.raises(UnsupportedFormat, match="save it with deflate"):
        read(_tifffile(np.zeros((4, 8, 3), np.float32), photometric="rgb", compression="zstd"))


_PLANES = {
    "gray and alpha": ("minisblack", ["unassalpha"], 1),
    "negative and alpha": ("miniswhite", ["unassalpha"], 1),
    "RGB": ("rgb", [], 3),
    "RGBA": ("rgb", ["unassalpha"], 3),
    "RGBA and more": ("rgb", ["unspecified", "unassalpha", "unspecified"], 3),
    "CMYK": ("separated", [], 4),
}


@pytest.mark.parametrize("compression", ["none", "deflate", "lzw", "packbits", "zstd"])
@pytest.mark.parametrize("tile", [None, (16, 16)])
@pytest.mark.parametrize("sample", _SAMPLES)
@pytest.mark.parametrize("kind", _PLANES)
def test_tiff_planes(kind: str, sample: str, tile: tuple[int, int] | None, compression: str) -> None:
    """Alpha is straight, and of real numbers it is no light, so it keeps its value."""
    photometric, extra, colors = _PLANES[kind]
    planes = np.stack(
        [np.roll(np.tile(_ramp(sample), (9, 5)), 3 * i, axis=1) for i in range(colors + len(extra))]
    )
    data = _tifffile(
        planes, photometric=photometric, planarconfig="separate", extrasamples=extra, tile=tile,
        compression=compression, byteorder=">" if colors == 3 else "<", bigtiff=colors == 4,
    )  # fmt: skip
    swapped = colors == 3 and sample in ("int16", "uint32", "int32", "float32")
    negative = kind.startswith("neg") and sample not in ("uint8", "float32")
    if compression == "zstd" and (sample == "float16" or swapped or negative):  # which only Pillow reads
        with pytest.raises(UnsupportedFormat, match="save it with deflate"):
            read(data)
        return
    expected = [_mapped(_negative(plane) if kind.startswith("neg") else plane) for plane in planes[:colors]]
    if "unassalpha" in extra:
        alpha = planes[colors + extra.index("unassalpha")]
        expected.append(np.rint(alpha.astype(float) * 65535) if sample[0] == "f" else _mapped(alpha))
    if sample[0] == "f" and kind == "CMYK":  # ink is no light either
        expected = [np.rint(plane.astype(float) * 65535) for plane in planes]
    image = read(data)
    assert image.hasalpha() == ("unassalpha" in extra)
    assert image.interpretation == "cmyk" or kind != "CMYK"
    assert np.abs(image.numpy() - np.moveaxis(np.stack(expected), 0, -1)).max() <= (
        5 if sample[0] == "f" else 1
    )


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("tile", [None, (16, 16)])
def test_lab_in_tiff_planes(tile: tuple[int, int] | None, bits: int) -> None:
    planes = np.random.default_rng(3).integers(0, 2**bits, (3, 32, 48)).astype(f"uint{bits}")
    found = read(_tifffile(planes, photometric="cielab", planarconfig="separate", tile=tile))
    lightness = planes[0] * (100 / (2**bits - 1))
    chroma = planes[1:].astype(f"int{bits}") / 2 ** (bits - 8)
    assert found.interpretation == "lab"
    assert np.allclose(found.numpy(), np.dstack((lightness, *chroma)), atol=1e-4)


def test_tiff_planes_keep_orientation_and_profile() -> None:
    planes = np.moveaxis(files.photo(), -1, 0)
    tags = [(274, 3, 1, 6, True), (34675, 7, len(files.profile()), files.profile(), True)]
    image = read(_tifffile(planes, photometric="rgb", planarconfig="separate", extratags=tags))
    assert np.array_equal(image.numpy(), files.photo())
    assert (image.get("orientation"), image.get("icc-profile-data")) == (6, files.profile())


@pytest.mark.parametrize(
    ("kind", "rows", "reason"), [(3, 8, "too few parts"), (8, 0, "no size"), (8, -1, "impossible")]
)
def test_tiff_planes_of_impossible_parts_are_damaged(kind: int, rows: int, reason: str) -> None:
    planes = np.moveaxis(files.photo(), -1, 0)
    data = bytearray(_tifffile(planes, photometric="rgb", planarconfig="separate", rowsperstrip=16))
    start = read_first_directory(HeaderReader(ByteSource(data), "TIFF")).entries[278].start
    struct.pack_into("<HIh", data, start - 6, kind, 1, rows)
    with pytest.raises(CorruptImage, match=reason):
        read(bytes(data))


def test_premultiplied_alpha_becomes_straight_in_planes() -> None:
    for sample in _SAMPLES:
        kind = np.dtype(sample)
        steps = np.tile(np.linspace(0, 1, 32), (4, 1))
        channels = np.stack((steps / 2, (1 - steps) / 2, steps / 2, np.full_like(steps, 0.5)))
        if kind.kind != "f":
            low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
            channels = np.rint(channels * (high - low) + low)
        data = _tifffile(
            channels.astype(kind), photometric="rgb", planarconfig="separate", extrasamples=["assocalpha"]
        )
        found = read(data).numpy()
        expected = _mapped(steps) if kind.kind == "f" else np.rint(steps * np.iinfo(found.dtype).max)
        assert np.abs(found[..., 0] - expected).max() <= (16 if kind.kind == "f" else 2), sample


@pytest.mark.parametrize("sample", ["int8", "int16", "uint32", "int32"])
def test_premultiplied_alpha_that_libvips_divides_wrongly_is_refused(sample: str) -> None:
    samples = np.ones((8, 8, 4), sample)
    with pytest.raises(UnsupportedFormat, match="premultiplied"):
        read(_tifffile(samples, photometric="rgb", extrasamples=["assocalpha"]))


def test_premultiplied_alpha_becomes_straight() -> None:
    import tifffile

    rgba = photos.deep(files.transparent())
    premultiplied = rgba.copy()
    premultiplied[..., :3] = np.rint(rgba[..., :3] * (rgba[..., 3:] / 65535))
    file = io.BytesIO()
    tifffile.imwrite(file, premultiplied, photometric="rgb", extrasamples=["assocalpha"])
    assert distance(read(file.getvalue()), rgba) < 0.001


@pytest.mark.parametrize(
    ("photometric", "extra", "kept"),
    [
        ("rgb", ["unspecified"], [0, 1, 2]),
        ("rgb", ["unspecified", "unspecified"], [0, 1, 2]),
        ("rgb", ["unassalpha"], [0, 1, 2, 3]),
        ("rgb", ["unspecified", "unassalpha"], [0, 1, 2, 4]),
        ("minisblack", ["unspecified"], [0]),
        ("minisblack", ["unspecified", "unassalpha"], [0, 2]),
        ("separated", ["unspecified"], [0, 1, 2, 3]),
        ("separated", ["unassalpha"], [0, 1, 2, 3, 4]),
    ],
)
def test_only_transparency_is_read_of_the_extra_channels_of_a_tiff(
    photometric: str, extra: list[str], kept: list[int]
) -> None:
    import tifffile

    colors = {"rgb": 3, "minisblack": 1, "separated": 4}[photometric]
    pixels = np.random.default_rng(5).integers(0, 256, (20, 30, colors + len(extra)), np.uint8)
    file = io.BytesIO()
    tifffile.imwrite(file, pixels, photometric=photometric, planarconfig="contig", extrasamples=extra)
    image = read(file.getvalue())
    assert np.array_equal(image.numpy().reshape(20, 30, -1), pixels[..., kept])
    assert image.hasalpha() == probe(ByteSource(file.getvalue())).alpha == (len(kept) > colors)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiff_by_pillow_is_not_turned(orientation: int) -> None:
    import tifffile

    planes = np.moveaxis(files.photo(), -1, 0)
    file = io.BytesIO()
    tifffile.imwrite(
        file, planes, photometric="rgb", planarconfig="separate", tile=(32, 32),
        extratags=[(274, 3, 1, orientation, True)],
    )  # fmt: skip
    image = read(file.getvalue())
    assert np.array_equal(image.numpy(), files.photo())
    stated = image.get("orientation") if image.get_typeof("orientation") else 1
    assert stated == orientation


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
from imgsvc_core.codecs import availability
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


def test_unknown_format_is_refused() -> None:
    info = attrs.evolve(probe(ByteSource(encoded("png").data)), format="xyz")
    with pytest.raises(UnsupportedFormat):
        load(ByteSource(encoded("png").data), info)
