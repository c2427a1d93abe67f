"""Facts of a header, against what made the file and against readers that know nothing of this project."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvips
import skimage.data
from PIL import Image, ImageCms

from imgsvc_core.bytesource import ByteSource
from imgsvc_core.codecs.headers.quantization import estimate_quality
from imgsvc_core.codecs.probe import probe
from imgsvc_core.errors import UnsupportedFormat
from imgsvc_core.info import ImageInfo
from tests.support import requires

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PHOTO = Image.fromarray(skimage.data.astronaut()).resize((96, 64))
SRGB_PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def facts(data: bytes) -> ImageInfo:
    return probe(ByteSource(data))


def pillow(image: Image.Image, format_: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format_, **options)
    return file.getvalue()


def vips(image: Image.Image | np.ndarray[Any, Any], suffix: str, **options: Any) -> bytes:
    pixels = np.asarray(image)
    picture = pyvips.Image.new_from_array(pixels)
    if pixels.dtype == np.uint16:
        picture = picture.copy(interpretation="rgb16")
    return bytes(picture.write_to_buffer(suffix, **options))


def with_orientation(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[274] = orientation
    return exif


def check(data: bytes, **expected: Any) -> ImageInfo:
    """The facts equal the expected ones, and those that are not named have their defaults."""
    info = facts(data)
    defaults: dict[str, Any] = {
        "width": 96, "height": 64, "colorspace": "srgb", "interlaced": False, "subsample": None, "depth": 8,
        "quality": None, "bytes": len(data), "frames": 1, "alpha": False, "orientation": 1, "delays": (),
        "plays": None, "profile": False, "levels": (),
    }  # fmt: skip
    assert {name: getattr(info, name) for name in defaults} == defaults | expected
    return info


class TestJpeg:
    @pytest.mark.parametrize("quality", range(1, 101))
    def test_quality_is_exact(self, quality: int) -> None:
        tile = PHOTO.resize((16, 16))
        for image, sampling in ((tile, 0), (tile, 2), (tile.convert("L"), 0), (tile.convert("CMYK"), 0)):
            data = pillow(image, "JPEG", quality=quality, subsampling=sampling)
            assert facts(data).quality == quality

    @pytest.mark.parametrize(("preset", "low", "high"), [("web_low", 20, 70), ("maximum", 90, 100)])
    def test_quality_of_tables_of_others(self, preset: str, low: int, high: int) -> None:
        quality = facts(pillow(PHOTO, "JPEG", quality=preset)).quality
        assert quality is not None
        assert low <= quality <= high

    def test_coarser_tables_never_tell_a_higher_quality(self) -> None:
        qualities = [estimate_quality([step] * 64) for step in range(1, 256)]
        assert qualities == sorted(qualities, reverse=True)
        assert qualities[0] == 100
        assert qualities[-1] == 1

    @pytest.mark.parametrize(("sampling", "name"), [(0, "4:4:4"), (1, "4:2:2"), (2, "4:2:0")])
    def test_subsampling(self, sampling: int, name: str) -> None:
        check(pillow(PHOTO, "JPEG", quality=85, subsampling=sampling), quality=85, subsample=name)

    @pytest.mark.parametrize(
        ("factors", "name"),
        [(0x12, "4:4:0"), (0x41, "4:1:1"), (0x42, "4:1:0"), (0x22, "4:2:0"), (0x31, None)],
    )
    def test_rare_subsampling(self, factors: int, name: str | None) -> None:
        data = bytearray(pillow(PHOTO, "JPEG", subsampling=0))
        data[data.index(b"\xff\xc0") + 11] = factors
        assert facts(bytes(data)).subsample == name

    def test_progressive(self) -> None:
        check(pillow(PHOTO, "JPEG", progressive=True), interlaced=True, quality=75, subsample="4:2:0")

    def test_gray(self) -> None:
        check(pillow(PHOTO.convert("L"), "JPEG"), colorspace="gray", quality=75)

    def test_cmyk(self) -> None:
        check(pillow(PHOTO.convert("CMYK"), "JPEG"), colorspace="cmyk", quality=75)

    def test_profile(self) -> None:
        data = pillow(PHOTO, "JPEG", icc_profile=SRGB_PROFILE)
        check(data, profile=True, quality=75, subsample="4:2:0")

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_orientation(self, orientation: int) -> None:
        data = pillow(PHOTO, "JPEG", exif=with_orientation(orientation))
        info = check(data, orientation=orientation, quality=75, subsample="4:2:0")
        upright = pyvips.Image.jpegload_buffer(data).autorot()
        assert info.upright_size == (upright.width, upright.height)

    @pytest.mark.parametrize("orientation", [0, 9, 65_535])
    def test_orientations_that_do_not_exist(self, orientation: int) -> None:
        assert facts(pillow(PHOTO, "JPEG", exif=with_orientation(orientation))).orientation == 1

    def test_big_endian_exif(self) -> None:
        exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
        assert facts(pillow(PHOTO, "JPEG", exif=exif)).orientation == 6

    def test_large_segments_and_stray_bytes_are_skipped(self) -> None:
        data = pillow(PHOTO, "JPEG", quality=64)
        comments = (b"\xff\xfe\xff\xff" + bytes(65_533)) * 40
        check(data[:2] + comments + b"stray\xff\xff" + data[3:], quality=64, subsample="4:2:0")


class TestPng:
    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            ("1", {"colorspace": "gray", "depth": 1}),
            ("L", {"colorspace": "gray"}),
            ("LA", {"colorspace": "gray", "alpha": True}),
            ("P", {"colorspace": "palette"}),
            ("RGB", {}),
            ("RGBA", {"alpha": True}),
            ("I;16", {"colorspace": "gray", "depth": 16}),
        ],
    )
    def test_modes(self, mode: str, expected: dict[str, Any]) -> None:
        image = PHOTO.convert("L").convert(mode) if mode in ("1", "I;16") else PHOTO.convert(mode)
        check(pillow(image, "PNG"), **expected)

    @pytest.mark.parametrize("bands", [3, 4])
    def test_sixteen_bits(self, bands: int) -> None:
        check(vips(np.zeros((64, 96, bands), np.uint16), ".png"), depth=16, alpha=bands == 4)

    @pytest.mark.parametrize("mode", ["L", "RGB", "P"])
    def test_transparent_color(self, mode: str) -> None:
        transparency = (0, 0, 0) if mode == "RGB" else 0
        assert facts(pillow(PHOTO.convert(mode), "PNG", transparency=transparency)).alpha

    def test_interlaced(self) -> None:
        check(vips(PHOTO, ".png", interlace=True), interlaced=True)

    def test_profile_and_orientation(self) -> None:
        data = pillow(PHOTO, "PNG", icc_profile=SRGB_PROFILE, exif=with_orientation(5))
        check(data, profile=True, orientation=5)

    def test_animation(self) -> None:
        others = [PHOTO.rotate(90), PHOTO.rotate(180)]
        data = pillow(PHOTO, "PNG", save_all=True, append_images=others, duration=[40, 0, 1500], loop=3)
        info = check(data, frames=3, delays=(40, 0, 1500), plays=3)
        assert info.format == "apng"
        with Image.open(io.BytesIO(data)) as image:
            assert (image.n_frames, image.info["loop"]) == (3, 3)  # type: ignore[attr-defined]

    def test_default_image_outside_the_animation(self) -> None:
        data = pillow(
            PHOTO, "PNG", save_all=True, default_image=True, duration=70,
            append_images=[PHOTO.rotate(9), PHOTO.rotate(18)],
        )  # fmt: skip
        check(data, frames=2, delays=(70, 70), plays=0)


class TestGif:
    @pytest.mark.parametrize("loop", [None, 0, 1, 7, 65_535])
    def test_animation(self, loop: int | None) -> None:
        others = [PHOTO.rotate(90), PHOTO.rotate(180)]
        looping = {} if loop is None else {"loop": loop}
        data = pillow(PHOTO, "GIF", save_all=True, append_images=others, duration=[50, 0, 2000], **looping)
        plays = 1 if loop is None else loop + 1 if loop else 0
        image = pyvips.Image.gifload_buffer(data, n=-1)
        check(data, colorspace="palette", frames=3, delays=(50, 0, 2000), plays=plays, alpha=image.hasalpha())
        assert image.get("n-pages") == 3
        assert image.get("delay") == [50, 0, 2000]
        assert image.get("loop") == plays

    def test_still(self) -> None:
        check(pillow(PHOTO, "GIF", interlace=0), colorspace="palette")
        check(pillow(PHOTO, "GIF", interlace=1), colorspace="palette", interlaced=True)

    def test_transparency(self) -> None:
        image = Image.new("RGBA", (96, 64), (255, 0, 0, 0))
        image.paste((0, 0, 255, 255), (0, 0, 20, 20))
        check(pillow(image, "GIF", interlace=0), colorspace="palette", alpha=True)

    @pytest.mark.parametrize(
        "screen", [(96, 64), (200, 100), (10, 10), (0, 0), (640, 480), (1024, 768), (2048, 2048), (2049, 9)]
    )
    def test_size_is_that_of_the_decoder(self, screen: tuple[int, int]) -> None:
        data = bytearray(pillow(PHOTO, "GIF"))
        data[6:10] = struct.pack("<HH", *screen)
        info = facts(bytes(data))
        image = pyvips.Image.gifload_buffer(bytes(data))
        assert (info.width, info.height) == (image.width, image.height)

    def test_many_frames_are_counted(self) -> None:
        head = b"GIF89a" + struct.pack("<HHBBB", 9, 7, 0x80, 0, 0) + bytes(6)
        frame = b"\x21\xf9\x04\0" + struct.pack("<H", 3) + b"\0\0"
        frame += b"\x2c" + struct.pack("<HHHHB", 0, 0, 9, 7, 0) + b"\x02\x01\x44\0"
        info = facts(head + frame * 20_000 + b"\x3b")
        assert (info.frames, info.plays, set(info.delays)) == (20_000, 1, {30})


class TestWebp:
    @pytest.mark.parametrize("quality", [5, 30, 50, 70, 75, 80, 90, 98])
    @pytest.mark.parametrize("name", ["astronaut", "coffee", "chelsea"])
    def test_quality(self, name: str, quality: int) -> None:
        photo = Image.fromarray(getattr(skimage.data, name)()).resize((160, 120))
        info = facts(pillow(photo, "WEBP", quality=quality))
        assert info.quality == pytest.approx(quality, abs=3)
        assert info.subsample == "4:2:0"

    def test_lossless(self) -> None:
        check(pillow(PHOTO, "WEBP", lossless=True))
        check(pillow(PHOTO.convert("RGBA"), "WEBP", lossless=True, exact=True), alpha=False)

    @pytest.mark.parametrize("lossless", [True, False])
    def test_alpha(self, lossless: bool) -> None:
        image = PHOTO.convert("RGBA")
        image.putalpha(Image.linear_gradient("L").resize(image.size))
        assert facts(pillow(image, "WEBP", lossless=lossless)).alpha

    def test_profile_and_orientation(self) -> None:
        data = pillow(PHOTO, "WEBP", lossless=True, icc_profile=SRGB_PROFILE, exif=with_orientation(8))
        check(data, profile=True, orientation=8)

    @pytest.mark.parametrize("loop", [0, 1, 5])
    def test_animation(self, loop: int) -> None:
        others = [PHOTO.rotate(90), PHOTO.rotate(180)]
        data = pillow(
            PHOTO,
            "WEBP",
            save_all=True,
            append_images=others,
            duration=[40, 90, 1500],
            loop=loop,
            lossless=True,
        )
        image = pyvips.Image.webpload_buffer(data, n=-1)
        check(data, frames=3, delays=(40, 90, 1500), plays=loop, alpha=image.hasalpha())
        assert (image.get("n-pages"), image.get("loop")) == (3, loop)
        assert image.get("delay") == [40, 90, 1500]


class TestHeif:
    @pytest.mark.parametrize(("chroma", "name"), [(420, "4:2:0"), (422, "4:2:2"), (444, "4:4:4")])
    def test_heic_subsampling(self, chroma: int, name: str) -> None:
        assert check(heic(PHOTO, chroma=chroma), subsample=name).format == "heic"

    def test_heic_alpha_and_profile(self) -> None:
        image = PHOTO.convert("RGBA")
        image.putalpha(Image.linear_gradient("L").resize(image.size))
        check(heic(image, icc_profile=SRGB_PROFILE), subsample="4:2:0", alpha=True, profile=True)

    def test_heic_gray(self) -> None:
        check(heic(PHOTO.convert("L")), colorspace="gray")

    def test_heic_deep(self) -> None:
        pillow_heif = requires.module("pillow_heif")
        pixels = np.zeros((64, 96, 3), np.uint16)
        file = io.BytesIO()
        pillow_heif.from_bytes("RGB;16", (96, 64), pixels.tobytes()).save(file)
        info = check(file.getvalue(), subsample="4:2:0", depth=facts(file.getvalue()).depth)
        assert (
            info.depth == pillow_heif.open_heif(file.getvalue(), convert_hdr_to_8bit=False).info["bit_depth"]
        )

    def test_heic_of_tiles(self) -> None:
        pillow_heif = requires.module("pillow_heif")
        photo = PHOTO.resize((700, 530))
        data = heic(photo, tile_size=256)
        info = facts(data)
        assert pillow_heif.open_heif(data).size == (info.width, info.height) == (700, 530)
        assert (info.subsample, info.frames) == ("4:2:0", 1)

    def test_heic_of_several_pictures_is_the_primary_one(self) -> None:
        pillow_heif = requires.module("pillow_heif")
        file = io.BytesIO()
        pictures = pillow_heif.from_pillow(PHOTO)
        pictures.add_from_pillow(PHOTO.resize((64, 48)))
        pictures.save(file, primary_index=1)
        check(file.getvalue(), width=64, height=48, subsample="4:2:0")

    @pytest.mark.parametrize(("mode", "expected"), [("RGB", {}), ("RGBA", {"alpha": True})])
    def test_avif(self, mode: str, expected: dict[str, Any]) -> None:
        image = PHOTO.convert("RGBA")
        image.putalpha(Image.linear_gradient("L").resize(image.size))
        check(
            pillow(image.convert(mode), "AVIF", icc_profile=SRGB_PROFILE),
            subsample="4:2:0",
            profile=True,
            **expected,
        )

    @pytest.mark.parametrize("name", ["4:2:0", "4:2:2", "4:4:4"])
    def test_avif_subsampling(self, name: str) -> None:
        check(pillow(PHOTO, "AVIF", subsampling=name), subsample=name)

    @pytest.mark.parametrize("depth", [10, 12])
    def test_avif_deep(self, depth: int) -> None:
        data = vips(np.zeros((64, 96, 3), np.uint16), ".avif", bitdepth=depth, effort=0)
        check(data, depth=depth, subsample=facts(data).subsample)

    @pytest.mark.parametrize("size", [(97, 63), (33, 21), (1, 1), (65, 130)])
    def test_odd_sizes_are_those_that_decode(self, size: tuple[int, int]) -> None:
        photo = PHOTO.resize(size)
        for data in (heic(photo), pillow(photo, "AVIF")):
            info = facts(data)
            assert (info.width, info.height) == size

    @pytest.mark.parametrize("wide", [True, False])
    def test_clean_aperture_then_rotation(self, wide: bool) -> None:
        aperture = struct.pack(">IIIIiIiI", 60, 1, 40, 1, 0, 2, 0, 2)
        config = bytes(16) + bytes([0xFC | 2, 0xF8 | 2, 0xF8 | 2])
        size = struct.pack(">III", 0, 100, 80)
        data = heif((b"ispe", size), (b"clap", aperture), (b"irot", b"\x03"), (b"hvcC", config), wide=wide)
        check(data, width=40, height=60, depth=10, subsample="4:2:2")
        data = heif((b"ispe", size), (b"irot", b"\x02"), (b"hvcC", config), wide=wide)
        check(data, width=100, height=80, depth=10, subsample="4:2:2")

    def test_other_codecs_are_not_read(self) -> None:
        with pytest.raises(UnsupportedFormat, match="neither as HEVC nor as AV1"):
            facts(heif((b"ispe", struct.pack(">III", 0, 9, 9)), (b"vvcC", bytes(9)), wide=False))

    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_avif_is_upright(self, orientation: int) -> None:
        data = pillow(PHOTO, "AVIF", exif=with_orientation(orientation))
        info = facts(data)
        image = pyvips.Image.heifload_buffer(data)
        assert (info.width, info.height) == (image.width, image.height)
        assert (info.width < info.height) == (orientation >= 5)
        assert info.orientation == 1


def box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", 8 + len(content)) + kind + content


def heif(*properties: tuple[bytes, bytes], wide: bool) -> bytes:
    """A file up to its data, of one picture with these properties; ``wide`` numbers take twice the bytes."""
    numbers = range(1, len(properties) + 1)
    item, number = (">I", "H") if wide else (">H", "B")
    shared = struct.pack(">BxxBI", wide, wide, 1) + struct.pack(item, 7)
    uses = shared + struct.pack(f">B{len(properties)}{number}", len(properties), *numbers)
    owned = b"".join(box(kind, content) for kind, content in properties)
    primary = box(b"pitm", struct.pack(">Bxxx", wide) + struct.pack(item, 7))
    meta = primary + box(b"iprp", box(b"ipco", owned) + box(b"ipma", uses))
    return box(b"ftyp", b"heic\0\0\0\0mif1heic") + box(b"meta", bytes(4) + meta) + box(b"mdat", b"")


def heic(image: Image.Image, **options: Any) -> bytes:
    pillow_heif = requires.module("pillow_heif")
    file = io.BytesIO()
    pillow_heif.from_pillow(image).save(file, **options)
    return file.getvalue()


class TestJpeg2000:
    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            ("L", {"colorspace": "gray"}),
            ("LA", {"colorspace": "gray", "alpha": True}),
            ("RGB", {"subsample": "4:4:4"}),
            ("RGBA", {"subsample": "4:4:4", "alpha": True}),
            ("I;16", {"colorspace": "gray", "depth": 16}),
        ],
    )
    @pytest.mark.parametrize("boxes", [True, False])
    def test_modes(self, mode: str, expected: dict[str, Any], boxes: bool) -> None:
        image = PHOTO.convert("L").convert(mode) if mode == "I;16" else PHOTO.convert(mode)
        data = pillow(image, "JPEG2000", num_resolutions=3, no_jp2=not boxes)
        assert check(data, levels=((48, 32), (24, 16)), **expected).format == "jp2"

    def test_levels_are_the_sizes_that_decode(self) -> None:
        data = pillow(PHOTO.resize((208, 144)), "JPEG2000", num_resolutions=5)
        levels = facts(data).levels
        assert len(levels) == 4
        for level, size in enumerate(levels, start=1):
            with Image.open(io.BytesIO(data)) as image:
                image.reduce = level  # type: ignore[method-assign, assignment]
                image.load()
                assert size == image.size

    def test_levels_are_rounded_up_at_both_ends(self) -> None:
        data = bytearray(pillow(PHOTO.resize((101, 67)), "JPEG2000", num_resolutions=5))
        assert facts(bytes(data)).levels == ((51, 34), (26, 17), (13, 9), (7, 5))
        size = data.index(b"\xff\x4f\xff\x51") + 8
        data[size : size + 16] = struct.pack(">IIII", 101, 67, 5, 3)
        info = facts(bytes(data))
        assert (info.width, info.height) == (96, 64)
        assert info.levels == ((48, 32), (24, 16), (12, 8), (6, 4))

    def test_deep_color(self) -> None:
        imagecodecs = requires.module("imagecodecs")
        pixels = np.arange(64 * 96 * 3, dtype=np.uint16).reshape(64, 96, 3)
        info = facts(imagecodecs.jpeg2k_encode(pixels, codecformat="jp2", level=0))
        assert (info.width, info.height, info.depth, info.colorspace) == (96, 64, 16, "srgb")


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
        assert facts(vips(PHOTO, ".tif", compression="jpeg", Q=70)).subsample == "4:2:0"
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
        section += b"8BIM" + block + length
    return (
        head + struct.pack(">I", 0) + struct.pack(">I", len(resources)) + resources
        + struct.pack(word, len(section)) + section
    )  # fmt: skip


class TestSvg:
    @pytest.mark.parametrize(
        ("attributes", "size"),
        [
            ('width="30" height="20"', (30, 20)),
            ('viewBox="0 0 300 200"', (300, 200)),
            ('width="60" viewBox="0 0 30 20"', (60, 40)),
            ('width="1in" height="25.4mm"', (72, 72)),
        ],
    )
    def test_size(self, attributes: str, size: tuple[int, int]) -> None:
        data = f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}><rect width="5" height="5"/></svg>'
        check(data.encode(), width=size[0], height=size[1], alpha=True)

    def test_size_of_the_drawing(self) -> None:
        data = b'<svg xmlns="http://www.w3.org/2000/svg"><rect x="7" width="30" height="20"/></svg>'
        check(data, width=30, height=20, alpha=True)


def test_name_and_path(tmp_path: Path) -> None:
    path = tmp_path / "photo.gif"
    path.write_bytes(pillow(PHOTO, "PNG"))
    info = probe(ByteSource(path))
    assert (info.name, info.format, info.bytes) == ("photo.gif", "png", path.stat().st_size)


def test_facts_of_a_file_and_of_its_bytes_are_equal(tmp_path: Path) -> None:
    data = pillow(PHOTO, "GIF", save_all=True, append_images=[PHOTO.rotate(n) for n in range(1, 40)])
    path = tmp_path / "photo.gif"
    path.write_bytes(data)
    assert probe(ByteSource(path)) == probe(ByteSource(data, name="photo.gif"))


def test_probing_a_photograph_imports_no_decoder_and_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    photo = pyvips.Image.new_from_array(skimage.data.astronaut())
    photo.replicate(16, 16).jpegsave(str(path), Q=60)
    program = """
        import resource, sys
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        from pathlib import Path
        from imgsvc_core.bytesource import ByteSource
        from imgsvc_core.codecs.probe import probe
        print(probe(ByteSource(Path(sys.argv[1]))).width)
        print(sorted({"numpy", "PIL", "pyvips", "psd_tools", "pillow_heif"} & set(sys.modules)))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    width, modules, kilobytes = run.stdout.splitlines()
    assert (width, modules) == ("8192", "[]")
    assert int(kilobytes) < 20_000
