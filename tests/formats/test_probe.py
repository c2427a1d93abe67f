"""Facts of a header, against what made the file and against readers that know nothing of this project."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import pyvips
from PIL import Image

from imgsvc_core.errors import CorruptImage, UnsupportedFormat
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jpeg.quantization import estimate_quality
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.settings import LoadSettings
from tests.formats.probing import PHOTO, SRGB_PROFILE, check, facts, pillow, vips, with_orientation
from tests.support import encoded, handmade, photos


@pytest.mark.parametrize("make", encoded.VARIANTS.values(), ids=encoded.VARIANTS)
def test_facts_are_those_of_the_picture_that_was_encoded(make: Callable[[], encoded.Encoded]) -> None:
    made = make()
    frames, height, width = made.pixels.shape[:3] if made.animated else (1, *made.pixels.shape[:2])
    info = facts(made.data)
    assert (info.format, info.width, info.height, info.frames) == (made.format, width, height, frames)
    assert (info.alpha, info.orientation) == (made.alpha, made.orientation)
    assert (info.delays, info.plays) == (made.delays, made.plays)
    assert info.profile or made.profile is None


def test_name_and_path(tmp_path: Path) -> None:
    path = tmp_path / "photo.gif"
    path.write_bytes(pillow(PHOTO, "PNG"))
    info = probe(ByteSource(path)).info
    assert (info.name, info.format, info.bytes) == ("photo.gif", "png", path.stat().st_size)


def test_facts_of_a_file_and_of_its_bytes_are_equal(tmp_path: Path) -> None:
    data = pillow(PHOTO, "GIF", save_all=True, append_images=[PHOTO.rotate(n) for n in range(1, 40)])
    path = tmp_path / "photo.gif"
    path.write_bytes(data)
    assert probe(ByteSource(path)).info == probe(ByteSource(data, name="photo.gif")).info


def test_probing_a_photograph_imports_no_decoder_and_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    photo = pyvips.Image.new_from_array(photos.astronaut())
    photo.replicate(16, 16).jpegsave(str(path), Q=60)
    program = """
        import resource, sys
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        from pathlib import Path
        from imgsvc_core.formats.bytesource import ByteSource
        from imgsvc_core.formats.probe import probe
        print(probe(ByteSource(Path(sys.argv[1]))).info.width)
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
        qualities = [estimate_quality(bytes([step]) * 64) for step in range(1, 256)]
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

    @pytest.mark.parametrize("length", [0, 1, 2, 6, 8])
    @pytest.mark.parametrize("mode", ["L", "RGB"])
    def test_transparent_colors_are_those_that_are_decoded(self, mode: str, length: int) -> None:
        data = handmade.png_with(np.zeros_like(PHOTO.convert(mode)), (b"tRNS", bytes(length)))
        assert facts(data).alpha == pyvips.Image.pngload_buffer(data).hasalpha()

    @pytest.mark.parametrize("more", [-1, 0, 1])
    def test_transparent_colors_of_a_palette_are_those_that_are_decoded(self, more: int) -> None:
        data = pillow(PHOTO.convert("P"), "PNG", transparency=bytes(7))
        start = data.index(b"PLTE") - 4
        palette = handmade.png_chunk(b"PLTE", data[start + 8 :][: 3 * (7 - more)])
        data = data[:start] + palette + data[data.index(b"tRNS") - 4 :]
        assert facts(data).alpha == pyvips.Image.pngload_buffer(data).hasalpha() == (more <= 0)

    def test_interlaced(self) -> None:
        check(vips(PHOTO, ".png", interlace=True), interlaced=True)

    def test_chunks_of_unknown_kinds(self) -> None:
        pixels = np.asarray(PHOTO)
        for kind in (b"abCd", b"aBCD", b"abcd", b"a0Cd"):
            check(handmade.png_with(pixels, (kind, b"hello")))
        with pytest.raises(UnsupportedFormat, match="'ABCD' is unknown and not optional"):
            facts(handmade.png_with(pixels, (b"ABCD", b"hello")))

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
    def test_size_is_that_of_the_screen_and_the_first_frame(self, screen: tuple[int, int]) -> None:
        data = bytearray(pillow(PHOTO, "GIF"))
        data[6:10] = struct.pack("<HH", *screen)
        info = facts(bytes(data))
        assert (info.width, info.height) == (max(96, screen[0]), max(64, screen[1]))

    @pytest.mark.parametrize("zeros", [1, 3])
    def test_blocks_that_are_ended_more_than_once(self, zeros: int) -> None:
        others = [PHOTO.rotate(90), PHOTO.rotate(180)]
        data = pillow(PHOTO, "GIF", save_all=True, append_images=others, duration=[50, 70, 90], loop=0)
        ends = data.replace(b"\0\x21\xf9\x04", bytes(1 + zeros) + b"\x21\xf9\x04")
        assert len(ends) == len(data) + 3 * zeros
        assert attrs.evolve(facts(ends), bytes=len(data)) == facts(data)
        assert np.array_equal(frames_of(ends), frames_of(data))

    def test_many_frames_are_counted(self) -> None:
        head = b"GIF89a" + struct.pack("<HHBBB", 9, 7, 0x80, 0, 0) + bytes(6)
        frame = b"\x21\xf9\x04\0" + struct.pack("<H", 3) + b"\0\0"
        frame += b"\x2c" + struct.pack("<HHHHB", 0, 0, 9, 7, 0) + b"\x02\x01\x44\0"
        info = facts(head + frame * 20_000 + b"\x3b")
        assert (info.frames, info.plays, set(info.delays)) == (20_000, 1, {30})


def frames_of(data: bytes) -> Any:
    source = ByteSource(data)
    return load(probe(source), LoadSettings(all_frames=True)).numpy()


class TestWebp:
    def test_lossy(self) -> None:
        check(pillow(PHOTO, "WEBP", quality=50), subsample="4:2:0")

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

    def test_the_first_of_several_exif_chunks_counts(self) -> None:
        data, other = (pillow(PHOTO, "WEBP", exif=with_orientation(number)) for number in (8, 3))
        chunks = data[12:] + other[other.index(b"EXIF") :]
        both = b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks
        assert facts(both).orientation == 8

    @pytest.mark.parametrize("place", [4, 7])
    def test_canvas_and_picture_have_one_size(self, place: int) -> None:
        data = bytearray(pillow(PHOTO, "WEBP", exif=with_orientation(8)))
        assert data[12:16] == b"VP8X"
        data[20 + place] ^= 1
        with pytest.raises(CorruptImage, match="its canvas and its picture differ in size"):
            facts(bytes(data))

    def test_an_animation_has_frames(self) -> None:
        data = bytearray(pillow(PHOTO, "WEBP", exif=with_orientation(8)))
        data[20] |= 2
        with pytest.raises(CorruptImage, match="it has no frame"):
            facts(bytes(data))

    @pytest.mark.parametrize("place", [20, 24])
    def test_lossless_data_has_a_start(self, place: int) -> None:
        data = bytearray(pillow(PHOTO, "WEBP", lossless=True))
        data[place] ^= 0x80
        with pytest.raises(CorruptImage, match="no valid start"):
            facts(bytes(data))

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
