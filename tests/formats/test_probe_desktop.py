"""Facts of the formats of desktop programs: TIFF, BMP, ICO, PSD and SVG."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

from tests.formats.probing import PHOTO, SRGB_PROFILE, check, facts, pillow, vips
from tests.support import requires


class TestTiff:
    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            ("1", {"colorspace": "gray", "depth": 1}),
            ("L", {"colorspace": "gray"}),
            ("LA", {"colorspace": "gray", "alpha": True}),
            ("P", {"colorspace": "palette"}),
            ("RGB", {}),
            ("RGBA", {"alpha": True}),
            ("RGBX", {}),
            ("CMYK", {"colorspace": "cmyk"}),
            ("LAB", {"colorspace": "lab"}),
            ("I;16", {"colorspace": "gray", "depth": 16}),
            ("F", {"colorspace": "gray", "depth": 32}),
        ],
    )
    @pytest.mark.parametrize("big", [True, False])
    def test_modes(self, mode: str, expected: dict[str, Any], big: bool) -> None:
        if mode == "LAB":
            image = Image.new("LAB", PHOTO.size)
        else:
            image = PHOTO.convert("L").convert(mode) if mode in ("1", "I;16", "F") else PHOTO.convert(mode)
        check(pillow(image, "TIFF", big_tiff=big), **expected)

    @pytest.mark.parametrize("order", ["<", ">"])
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
    def test_byte_orders_and_depths(self, order: str, dtype: str) -> None:
        tifffile = requires.module("tifffile")
        file = io.BytesIO()
        pixels = np.zeros((64, 96, 4), dtype)
        tifffile.imwrite(file, pixels, byteorder=order, photometric="rgb", extrasamples=["unassalpha"])
        check(file.getvalue(), depth=np.dtype(dtype).itemsize * 8, alpha=True)

    def test_orientation_and_profile(self) -> None:
        data = pillow(PHOTO, "TIFF", tiffinfo={274: 6}, icc_profile=SRGB_PROFILE)
        check(data, orientation=6, profile=True)

    def test_compressed_as_jpeg(self) -> None:
        halved = vips(PHOTO, ".tif", compression="jpeg", Q=70)
        assert facts(halved).subsample == "4:2:0"
        entry, unknown = (struct.pack("<HHI", tag, 3, 2) for tag in (530, 65_000))
        assert facts(halved.replace(entry, unknown)).subsample == "4:2:0"
        assert facts(vips(PHOTO, ".tif", compression="jpeg", Q=95)).colorspace == "srgb"

    def test_many_pages_are_a_document(self) -> None:
        data = pillow(PHOTO, "TIFF", save_all=True, append_images=[PHOTO, PHOTO.rotate(90, expand=True)])
        check(data)

    @pytest.mark.parametrize("subifd", [True, False])
    @pytest.mark.parametrize("big", [True, False])
    def test_pyramid(self, subifd: bool, big: bool) -> None:
        photo = PHOTO.resize((601, 403))
        data = vips(
            photo, ".tif", pyramid=True, subifd=subifd, bigtiff=big, tile=True, tile_width=64, tile_height=64
        )
        levels = facts(data).levels
        assert len(levels) >= 3
        for number, size in enumerate(levels, start=1):
            place = {"subifd": number - 1} if subifd else {"page": number}
            image = pyvips.Image.tiffload_buffer(data, **place)
            assert size == (image.width, image.height)


class TestBmp:
    @pytest.mark.parametrize(
        ("mode", "colorspace"), [("1", "palette"), ("L", "palette"), ("P", "palette"), ("RGB", "srgb")]
    )
    def test_modes(self, mode: str, colorspace: str) -> None:
        check(pillow(PHOTO.convert(mode), "BMP"), colorspace=colorspace)

    @pytest.mark.parametrize(
        ("bits", "masks", "depth", "alpha"),
        [
            (16, (0xF800, 0x07E0, 0x001F, 0), 6, False),
            (16, (0x7C00, 0x03E0, 0x001F, 0x8000), 5, True),
            (32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000), 8, True),
            (32, (0x3FF00000, 0xFFC00, 0x3FF, 0), 10, False),
        ],
    )
    def test_masks(self, bits: int, masks: tuple[int, ...], depth: int, alpha: bool) -> None:
        check(bitmap(size=108, bits=bits, compression=3, masks=masks), depth=depth, alpha=alpha)

    def test_top_down(self) -> None:
        check(bitmap(height=-64))

    def test_oldest_header(self) -> None:
        head = struct.pack("<IHHHH", 12, 96, 64, 1, 24)
        check(b"BM" + struct.pack("<IHHI", 26, 0, 0, 26) + head)

    def test_five_bits(self) -> None:
        check(bitmap(bits=16), depth=5)


def bitmap(
    size: int = 40, width: int = 96, height: int = 64, bits: int = 24, compression: int = 0,
    masks: tuple[int, ...] = (),
) -> bytes:  # fmt: skip
    head = struct.pack("<IiiHHIIiiII", size, width, height, 1, bits, compression, 0, 0, 0, 0, 0)
    head = (head + struct.pack(f"<{len(masks)}I", *masks)).ljust(size, b"\0")
    return b"BM" + struct.pack("<IHHI", 14 + size, 0, 0, 14 + size) + head


class TestIcon:
    @pytest.mark.parametrize("bitmap_format", ["png", "bmp"])
    def test_largest_picture(self, bitmap_format: str) -> None:
        data = pillow(
            PHOTO.convert("RGBA").resize((128, 128)), "ICO", sizes=[(16, 16), (128, 128), (32, 32)],
            bitmap_format=bitmap_format,
        )  # fmt: skip
        assert check(data, width=128, height=128, alpha=True).format == "ico"

    def test_side_of_256(self) -> None:
        data = pillow(PHOTO.resize((256, 256)), "ICO", sizes=[(256, 256), (48, 48)])
        check(data, width=256, height=256)

    def test_the_deepest_of_equal_size(self) -> None:
        gray = pillow(PHOTO.convert("L").resize((32, 32)), "PNG")
        color = pillow(PHOTO.convert("RGBA").resize((32, 32)), "PNG")
        info = facts(icon((32, 8, gray), (32, 32, color)))
        assert (info.colorspace, info.alpha) == ("srgb", True)

    def test_cursor(self) -> None:
        data = bytearray(icon((32, 0, pillow(PHOTO.resize((32, 32)), "PNG"))))
        data[2] = 2
        check(bytes(data), width=32, height=32)


def icon(*pictures: tuple[int, int, bytes]) -> bytes:
    """An icon of pictures, each with its side, its bits and its file."""
    head = struct.pack("<HHH", 0, 1, len(pictures))
    start = len(head) + 16 * len(pictures)
    for side, bits, data in pictures:
        head += struct.pack("<BBBBHHII", side, side, 0, 0, 1, bits, len(data), start)
        start += len(data)
    return head + b"".join(data for *_, data in pictures)


class TestPhotoshop:
    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            ("L", {"colorspace": "gray"}),
            ("RGB", {}),
            ("CMYK", {"colorspace": "cmyk"}),
        ],
    )
    def test_modes(self, mode: str, expected: dict[str, Any]) -> None:
        psd_tools = requires.module("psd_tools")
        file = io.BytesIO()
        psd_tools.PSDImage.frompil(PHOTO.convert(mode)).save(file)
        assert check(file.getvalue(), **expected).format == "psd"
        again = psd_tools.PSDImage.open(io.BytesIO(file.getvalue()))
        assert (again.width, again.height, again.depth) == (96, 64, 8)

    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize(("layers", "alpha"), [(-3, True), (-1, True), (0, False), (1, False)])
    def test_extra_channel(self, version: int, layers: int, alpha: bool) -> None:
        check(photoshop(version, 4, layers=layers), alpha=alpha)

    @pytest.mark.parametrize("version", [1, 2])
    def test_extra_channel_of_deep_pictures(self, version: int) -> None:
        check(photoshop(version, 4, depth=16, block=b"Mt16"), depth=16, alpha=True)
        check(photoshop(version, 4, depth=16, block=b"Patt"), depth=16)

    @pytest.mark.parametrize("version", [1, 2])
    def test_no_extra_channel(self, version: int) -> None:
        check(photoshop(version, 3, layers=-1))

    def test_profile(self) -> None:
        check(photoshop(1, 3, profile=SRGB_PROFILE), profile=True)

    @pytest.mark.parametrize(
        ("number", "channels", "name"),
        [(0, 1, "gray"), (1, 1, "gray"), (2, 1, "palette"), (4, 4, "cmyk"), (8, 1, "gray"), (9, 3, "lab")],
    )
    def test_color_modes(self, number: int, channels: int, name: str) -> None:
        assert facts(photoshop(1, channels, mode=number)).colorspace == name


def photoshop(
    version: int, channels: int, *, mode: int = 3, depth: int = 8, layers: int = 0, block: bytes = b"",
    profile: bytes = b"",
) -> bytes:  # fmt: skip
    """A PSD of 96 x 64 pixels up to its layers; version 2 has lengths of 8 bytes."""
    word = ">Q" if version == 2 else ">I"
    head = b"8BPS" + struct.pack(">H6xHIIHH", version, channels, 64, 96, depth, mode)
    resources = b"8BIM" + struct.pack(">HHI", 1005, 0, 16) + bytes(16)
    if profile:
        resources += b"8BIM" + struct.pack(">HHI", 1039, 0, len(profile)) + profile
    info = struct.pack(">h", layers) + b"\0\0" if layers else b""
    section = struct.pack(word, len(info)) + info + struct.pack(">I", 0)
    if block:
        length = struct.pack(word if block == b"Mt16" else ">I", 0)
        padded = b"8BIMluni" + struct.pack(">I", 6) + bytes(8)  # blocks end at multiples of four
        section += padded + b"8BIM" + block + length
    return (
        head + struct.pack(">I", 0) + struct.pack(">I", len(resources)) + resources
        + struct.pack(word, len(section)) + section
    )  # fmt: skip
