"""RGB spaces that headers state by numbers instead of a profile."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from imgsvc_core.formats.rgb_space import BT2020, DISPLAY_P3, SRGB, RgbSpace, from_code_points
from tests.formats.probing import facts
from tests.formats.test_probe_boxes import heif as made_of_boxes
from tests.support import encoded, requires
from tests.support.handmade import png_with
from tests.support.photos import coffee

PIXELS = coffee()[:16, :16]
SRGB_AS_NUMBERS = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
ADOBE_AS_NUMBERS = (0.3127, 0.329, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06)
ADOBE = ((0.64, 0.33), (0.21, 0.71), (0.15, 0.06), (0.3127, 0.329))


def cicp(primaries: int, transfer: int, matrix: int = 0, full: int = 1) -> tuple[bytes, bytes]:
    return b"cICP", bytes((primaries, transfer, matrix, full))


def gama(value: int) -> tuple[bytes, bytes]:
    return b"gAMA", struct.pack(">I", value)


def chrm(*numbers: float) -> tuple[bytes, bytes]:
    return b"cHRM", struct.pack(">8I", *(round(100_000 * number) for number in numbers))


PROFILE = (b"iCCP", b"x\0\0" + b"x\x9c\x03\0\0\0\0\1")
PNG: dict[str, tuple[list[tuple[bytes, bytes]], RgbSpace | None]] = {
    "nothing": ([], None),
    "Display P3": ([cicp(12, 13)], RgbSpace(DISPLAY_P3)),
    "sRGB": ([cicp(1, 13)], None),
    "BT.709": ([cicp(1, 1)], None),
    "unspecified": ([cicp(2, 2)], None),
    "unknown": ([cicp(200, 201)], None),
    "PQ": ([cicp(9, 16)], RgbSpace(BT2020, "pq")),
    "PQ with a light level": (
        [cicp(9, 16), (b"cLLI", struct.pack(">2I", 4_000_0000, 0))],
        RgbSpace(BT2020, "pq", peak=4000),
    ),
    "HLG": ([cicp(9, 18)], RgbSpace(BT2020, "hlg")),
    "gamma 2.2 of film": ([cicp(9, 4)], RgbSpace(BT2020, "gamma", 2.2)),
    "gamma 2.8 of PAL": ([cicp(9, 5)], RgbSpace(BT2020, "gamma", 2.8)),
    "logarithm of 100:1": ([cicp(9, 9)], RgbSpace(BT2020, "log100")),
    "logarithm of 316:1": ([cicp(9, 10)], RgbSpace(BT2020, "log316")),
    "SMPTE ST 428": ([cicp(9, 17)], RgbSpace(BT2020, "st428")),
    "linear": ([cicp(1, 8)], RgbSpace(transfer="gamma", gamma=1)),
    "video": ([cicp(9, 16, full=0)], None),
    "YCbCr": ([cicp(9, 16, matrix=9)], None),
    "too short": ([(b"cICP", b"\x0c\x0d\x00")], None),
    "cICP before a profile": ([cicp(12, 13), PROFILE], RgbSpace(DISPLAY_P3)),
    "cICP before gamma": ([gama(100_000), cicp(12, 13)], RgbSpace(DISPLAY_P3)),
    "gamma 1": ([gama(100_000)], RgbSpace(transfer="gamma", gamma=1)),
    "gamma 1.8": ([gama(55_556)], RgbSpace(transfer="gamma", gamma=100_000 / 55_556)),
    "gamma 2.2": ([gama(45_455)], None),
    "gamma of 0": ([gama(0)], None),
    "gamma beyond reason": ([gama(4_000_000_000)], None),
    "gamma of three bytes": ([(b"gAMA", b"\0\1\2")], None),
    "sRGB by numbers": ([gama(45_455), chrm(*SRGB_AS_NUMBERS)], None),
    "Adobe RGB": (
        [gama(45_470), chrm(*ADOBE_AS_NUMBERS)],
        RgbSpace(ADOBE, "gamma", 100_000 / 45_470),
    ),
    "chromaticities alone": ([chrm(*ADOBE_AS_NUMBERS)], RgbSpace(ADOBE)),
    "one color three times": ([chrm(0.3127, 0.329, *(0.3, 0.3) * 3)], None),
    "no white": ([chrm(0, 0, *ADOBE_AS_NUMBERS[2:])], None),
    "yellow as white": ([chrm(0.6, 0.4, *ADOBE_AS_NUMBERS[2:])], None),
    "chunk of sRGB before numbers": ([(b"sRGB", b"\0"), gama(100_000), chrm(*ADOBE_AS_NUMBERS)], None),
    "profile before numbers": ([PROFILE, gama(100_000)], None),
}


@pytest.mark.parametrize("name", PNG)
def test_png(name: str) -> None:
    chunks, expected = PNG[name]
    assert facts(png_with(PIXELS, *chunks)).rgb_space == expected


def nclx(data: bytes, primaries: int, transfer: int) -> bytes:
    """The file with other code points."""
    place = data.index(b"nclx") + 4
    return data[:place] + struct.pack(">HH", primaries, transfer) + data[place + 4 :]


def heif(format: str) -> bytes:
    if format == "HEIF":
        requires.module("pillow_heif").register_heif_opener()
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(coffee()[:64, :64])).save(file, format, quality=90)
    return file.getvalue()


@pytest.mark.parametrize("format", ["AVIF", "HEIF"])
@pytest.mark.parametrize(
    ("code_points", "expected"),
    [
        ((1, 13), None), ((2, 2), None), ((1, 1), None), ((12, 13), RgbSpace(DISPLAY_P3)),
        ((9, 16), RgbSpace(BT2020, "pq")), ((9, 18), RgbSpace(BT2020, "hlg")),
        ((1, 4), RgbSpace(SRGB, "gamma", 2.2)),
    ],
)  # fmt: skip
def test_heic_and_avif(format: str, code_points: tuple[int, int], expected: RgbSpace | None) -> None:
    assert facts(nclx(heif(format), *code_points)).rgb_space == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (4, (0.67, 0.33, 0.21, 0.71, 0.14, 0.08, 0.31, 0.316)),
        (5, (0.64, 0.33, 0.29, 0.6, 0.15, 0.06, 0.3127, 0.329)),
        (6, (0.63, 0.34, 0.31, 0.595, 0.155, 0.07, 0.3127, 0.329)),
        (7, (0.63, 0.34, 0.31, 0.595, 0.155, 0.07, 0.3127, 0.329)),
        (8, (0.681, 0.319, 0.243, 0.692, 0.145, 0.049, 0.31, 0.316)),
        (9, (0.708, 0.292, 0.17, 0.797, 0.131, 0.046, 0.3127, 0.329)),
        (10, (1, 0, 0, 1, 0, 0, 1 / 3, 1 / 3)),
        (11, (0.68, 0.32, 0.265, 0.69, 0.15, 0.06, 0.314, 0.351)),
        (12, (0.68, 0.32, 0.265, 0.69, 0.15, 0.06, 0.3127, 0.329)),
        (22, (0.63, 0.34, 0.295, 0.605, 0.155, 0.077, 0.3127, 0.329)),
    ],
)
def test_primaries(code: int, expected: tuple[float, ...]) -> None:
    """Red, green, blue and white of table 2 of ITU-T H.273."""
    space = from_code_points(code, 13)
    assert space is not None
    assert sum(space.primaries, ()) == expected


@pytest.mark.parametrize("format", ["AVIF", "HEIF"])
def test_a_file_whose_properties_state_no_colors_is_srgb(format: str) -> None:
    """The coded picture states them too, which readers ignore (ISO/IEC 23000-22, 7.3.6.4)."""
    data = nclx(heif(format), 12, 16)
    assert facts(data.replace(b"colrnclx", b"skipnclx")).rgb_space is None


def test_a_profile_comes_before_code_points() -> None:
    file = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(coffee()[:64, :64]))
    picture.save(file, "AVIF", icc_profile=encoded.profile())
    info = facts(nclx(file.getvalue(), 12, 13))
    assert info.profile
    assert info.rgb_space is None


@pytest.mark.parametrize(("level", "peak"), [(4000, 4000), (0, 1000)])
def test_the_light_level_of_heic(level: int, peak: float) -> None:
    data = made_of_boxes(
        (b"ispe", struct.pack(">III", 0, 100, 80)),
        (b"hvcC", bytes(16) + bytes([0xFC | 1, 0xF8 | 2, 0xF8 | 2])),
        (b"colr", b"nclx" + struct.pack(">HHHB", 9, 16, 9, 0x80)),
        (b"clli", struct.pack(">HH", level, 100)),
        wide=False,
    )
    assert facts(data).rgb_space == RgbSpace(BT2020, "pq", peak=peak)
