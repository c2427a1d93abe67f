"""Facts of the formats that are made of boxes: HEIC, AVIF and JPEG 2000."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from imgsvc_core.errors import UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
from tests.formats.probing import PHOTO, SRGB_PROFILE, check, facts, pillow, vips, with_orientation
from tests.support import requires

sizes = st.tuples(st.integers(33, 300), st.integers(33, 300))


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

    def test_one_of_several_layers_is_not_read(self) -> None:
        size, config = struct.pack(">III", 0, 9, 9), b"\x81\0\x0c\0"
        layered = (b"ispe", size), (b"av1C", config)
        assert facts(heif(*layered, (b"a1op", b"\0"), wide=False)).format == "avif"
        with pytest.raises(UnsupportedFormat, match="one of its layers"):
            facts(heif(*layered, (b"a1op", b"\2"), wide=False))

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
        levels = () if mode == "I;16" else ((48, 32), (24, 16))  # deep pictures are decoded whole
        assert check(data, levels=levels, **expected).format == "jp2"

    def test_five_channels_are_not_told_as_damage(self) -> None:
        imagecodecs = requires.module("imagecodecs")
        data = bytes(imagecodecs.jpeg2k_encode(np.zeros((32, 32, 5), np.uint8), codecformat="jp2"))
        with pytest.raises(UnsupportedFormat, match="has 5 channels"):
            probe(ByteSource(data)).load(LoadSettings())

    def test_levels_are_the_sizes_that_decode(self) -> None:
        data = pillow(PHOTO.resize((208, 144)), "JPEG2000", num_resolutions=5)
        levels = facts(data).levels
        assert len(levels) == 4
        for level, size in enumerate(levels, start=1):
            with Image.open(io.BytesIO(data)) as image:
                image.reduce = level  # type: ignore[method-assign, assignment]
                image.load()
                assert size == image.size

    @given(sides=sizes, tile=st.tuples(st.integers(1, 300), st.integers(1, 300)))
    @example((512, 512), (100, 130))  # the last tile is between two pixels of the smallest levels
    @example((257, 257), (128, 128))
    @example((500, 500), (90, 90))
    def test_levels_of_tiles_decode(self, sides: tuple[int, int], tile: tuple[int, int]) -> None:
        picture = probe(ByteSource(pillow(PHOTO.resize(sides), "JPEG2000", tile_size=tile)))
        for width, height in picture.info.levels:
            image = picture.load(LoadSettings(scale=width / picture.info.width))
            assert (image.width, image.height) == (width, height)
            image.avg()

    def test_levels_are_rounded_up(self) -> None:
        data = pillow(PHOTO.resize((101, 67)), "JPEG2000", num_resolutions=5)
        assert facts(data).levels == ((51, 34), (26, 17), (13, 9), (7, 5))

    def test_deep_color(self) -> None:
        imagecodecs = requires.module("imagecodecs")
        pixels = np.arange(64 * 96 * 3, dtype=np.uint16).reshape(64, 96, 3)
        info = facts(imagecodecs.jpeg2k_encode(pixels, codecformat="jp2", level=0))
        assert (info.width, info.height, info.depth, info.colorspace) == (96, 64, 16, "srgb")
