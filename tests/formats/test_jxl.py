"""JPEG XL: facts without decoding, what files hold beside pixels, and damage."""

from __future__ import annotations

import functools
import random
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import pyvips
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

import imgsvc_core as imgsvc
from imgsvc_core._runtime.vipsimage import PROFILE
from imgsvc_core.errors import CorruptImage, ImageTooLarge, ImgsvcError, UnsupportedFormat
from imgsvc_core.formats.boxes import make_box
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.jxl import entropy, icc
from imgsvc_core.formats.jxl.bits import BitReader, BitWriter, Codestream
from imgsvc_core.formats.jxl.codestream import RATE, add_srgb, read_header
from imgsvc_core.formats.jxl.entropy import Decoder
from imgsvc_core.formats.jxl.header import profile_of
from imgsvc_core.formats.loading import load
from imgsvc_core.formats.metadata import EXIF, XMP, blob
from imgsvc_core.formats.probe import probe
from imgsvc_core.formats.reader import HeaderReader
from imgsvc_core.formats.saving import save
from imgsvc_core.formats.settings import LoadSettings, SaveSettings
from tests.formats.probing import facts
from tests.formats.test_profiles import SRGB, table
from tests.formats.test_profiles import profile as matrix_profile
from tests.support import libjxl, photos
from tests.support.encoded import encoded, frames, gray, photo, profile, transparent
from tests.support.handmade import pillow, vips

_EXIF = Image.Exif()
_EXIF[0x8298] = "Ada"
_BLOCK = _EXIF.tobytes().removeprefix(b"Exif\0\0")
_PACKET = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>" + b"<!-- here -->" * 20 + b"</x:xmpmeta>"
_ANIMATED: dict[str, Any] = {"have_animation": 1, "rate": 100, "divisor": 1}


def pixels_of(data: bytes, **options: Any) -> pyvips.Image:
    image = load(probe(ByteSource(data)), LoadSettings(sequential=False, **options))
    assert isinstance(image, pyvips.Image)
    return image


@given(
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    bands=st.integers(1, 4),
    kind=st.sampled_from([np.uint8, np.uint16]),
    lossless=st.booleans(),
    orientation=st.integers(1, 8),
)
@settings(max_examples=60)
def test_facts_are_those_that_the_library_wrote(
    width: int, height: int, bands: int, kind: Any, lossless: bool, orientation: int
) -> None:
    pixels = np.full((height, width, bands), 77, kind)
    data = libjxl.encode(pixels, distance=None if lossless else 1.0, orientation=orientation)
    found = facts(data)
    assert (found.width, found.height, found.orientation) == (width, height, orientation)
    assert (found.alpha, found.depth) == (bands in (2, 4), 8 * kind().itemsize)
    assert found.colorspace == ("gray" if bands < 3 else "srgb")
    assert (found.frames, found.delays, found.plays) == (1, (), None)


@given(
    durations=st.lists(st.integers(0, 1 << 20), min_size=2, max_size=6),
    rate=st.integers(1, 2000),
    divisor=st.integers(1, 1001),
    plays=st.integers(0, 70_000),
    bands=st.integers(1, 4),
    lossless=st.booleans(),
)
@settings(max_examples=60)
def test_times_are_those_that_the_library_tells(
    durations: list[int], rate: int, divisor: int, plays: int, bands: int, lossless: bool
) -> None:
    pictures = [np.full((9, 14, bands), 40 * number, np.uint8) for number in range(len(durations))]
    timing = {"have_animation": 1, "rate": rate, "divisor": divisor, "plays": plays}
    data = libjxl.encode(pictures, distance=None if lossless else 2.0, durations=durations, **timing)
    delays, told = libjxl.times(data)
    found = facts(data)
    assert found.frames == len(delays)
    assert found.delays == (tuple(min(delay, 2**31 - 1) for delay in delays) if len(delays) > 1 else ())
    assert found.plays == (told if len(delays) > 1 else None)


@pytest.mark.parametrize("effort", [1, 3, 7])
@pytest.mark.parametrize("options", [{}, {13: 1}, {14: 1}, {15: 1}])
def test_times_of_frames_of_many_parts(effort: int, options: dict[int, int]) -> None:
    """The order of parts is told by entropy coding if groups start in the middle (option 13)."""
    large = np.tile(photo(), (9, 9, 1))
    data = libjxl.encode(
        [large, 255 - large], distance=3.0, durations=[3, 90], options={0: effort, **options}, **_ANIMATED
    )
    assert facts(data).delays == (30, 900)
    assert pixels_of(data, all_frames=True).height == 2 * large.shape[0]


def test_the_end_of_a_frame_of_very_many_parts() -> None:
    """The order of more than a hundred parts is coded by ANS."""
    pixels = np.zeros((1500, 1500, 1), np.uint8)
    data = libjxl.encode(pixels, options={0: 2, 13: 1, 26: 0})
    assert imgsvc.process(data + b"the rest", {"output": {"keep_pixels": True}}).data == data


@pytest.mark.parametrize("name", ["srgb", "p3"])
def test_profiles_come_back(name: str) -> None:
    wanted = pyvips.Operation.call("profile_load", name)
    picture = probe(ByteSource(libjxl.encode(photo(), profile=wanted)))
    assert picture.info.profile
    assert profile_of(picture.header) == wanted
    assert blob(pixels_of(libjxl.encode(photo(), profile=wanted)), PROFILE) == wanted


@pytest.mark.parametrize("platform", [b"APPL", b"MSFT", b"SGI ", b"SUNW"])
@pytest.mark.parametrize("tag", [b"bkpt", b"kXYZ", b"kTRC", b"chrm", b"dmnd", b"dmdd", b"lumi", b"abcd"])
def test_any_name_in_a_profile_comes_back(tag: bytes, platform: bytes) -> None:
    """Frequent ones have numbers."""
    known = pyvips.Operation.call("profile_load", "p3").replace(b"cprt", tag)
    wanted = known[:40] + platform + known[44:]
    picture = probe(ByteSource(libjxl.encode(photo()[:8, :8], profile=wanted)))
    assert profile_of(picture.header) == wanted


@given(data=st.binary(min_size=0, max_size=900))
@example(data=bytes(range(256)) * 8)  # its copies have a distribution of their own
@settings(max_examples=40)
def test_any_content_of_a_profile_comes_back(data: bytes) -> None:
    """The library only takes profiles that it can read, so what follows one of them varies."""
    wanted = bytearray(profile() + data + bytes(-len(data) % 4))
    wanted[:4] = len(wanted).to_bytes(4, "big")
    picture = probe(ByteSource(libjxl.encode(photo()[:8, :8], profile=bytes(wanted))))
    assert profile_of(picture.header) == bytes(wanted)


@pytest.mark.parametrize(
    ("commands", "data", "expected"),
    [
        (b"\2\5", bytes(range(5)), bytes([0, 3, 1, 4, 2])),  # halves of numbers, one after the other
        (b"\3\12", bytes(range(10)), bytes([0, 3, 6, 9, 1, 4, 7, 2, 5, 8])),  # quarters
        (b"\1\3\4\0\3", b"xy\12\1\1\1", b"xy\12\13\14\15"),
        (b"\1\2\4\4\2", b"\12\24\0\1", b"\12\24\36\51"),  # as far again, and one more
        (b"\1\3\4\10\2", b"\1\4\11\0\0", bytes([1, 4, 9, 16, 25])),
        (b"\1\2\4\1\4", b"\1\377\0\0\0\1", b"\1\377\1\377\1\0"),
        (b"\1\4\4\21\4\2", b"abcd\0\1", b"abcdac"),  # the number before the last one
        (b"\1\4\4\3\4", b"abcd\0\0\0\0", b"abcdabcd"),
        (b"\12\25", b"123456789abc", b"XYZ \0\0\0\x00123456789abccurv\0\0\0\0"),
    ],
)
def test_commands_that_unpack_a_profile(commands: bytes, data: bytes, expected: bytes) -> None:
    """Encoders write few of them."""
    packed = bytes([128 + len(expected), 1, 1 + len(commands), 0]) + commands + bytes(128) + data
    assert icc._Unpacking(packed).profile()[128:] == expected


@pytest.mark.parametrize(
    ("commands", "tags"),
    [
        (b"\2\4", [(b"cprt", 140, 0)]),  # behind the tags
        (b"\4\3", [(b"rXYZ", 164, 20), (b"gXYZ", 184, 20), (b"bXYZ", 204, 20)]),
        (b"\4\2", [(b"rTRC", 164, 0), (b"gTRC", 164, 0), (b"bTRC", 164, 0)]),
        (b"\4\x84\7\5\x46\3", [(b"cprt", 164, 7), (b"wtpt", 171, 20), (b"bkpt", 3, 20)]),
    ],
)
def test_places_of_tags_in_a_profile_are_told_or_follow(
    commands: bytes, tags: list[tuple[bytes, int, int]]
) -> None:
    expected = struct.pack(">I", len(tags)) + b"".join(struct.pack(">4sII", *tag) for tag in tags)
    packed = bytes([128 + len(expected), 1, len(commands)]) + commands + bytes(128)
    assert icc._Unpacking(packed).profile()[128:] == expected


@pytest.mark.parametrize(
    ("commands", "data"),
    [
        (b"\2\6", bytes(5)),  # more than there is
        (b"\1\3", bytes(5)),  # less than there is
        (b"\1\5" + b"\12", bytes(17)),  # a longer profile
        (b"\1\3\4\2\2", bytes(5)),  # numbers of three bytes
        (b"\1\3\4\14\2", bytes(5)),  # of an unknown order
        (b"\1\3\4\23\2\2", bytes(5)),  # that overlap
        (b"\1\3\4\20\377\377\3\2", bytes(5)),  # before the first one
        (b"\5\5", bytes(5)),
        (b"\1" + b"\377" * 9, bytes(5)),
    ],
)
def test_commands_that_unpack_no_profile(commands: bytes, data: bytes) -> None:
    packed = bytes([128 + 5, 1, 1 + len(commands), 0]) + commands + bytes(128) + data
    with pytest.raises((IndexError, ValueError)):
        icc._Unpacking(packed).profile()


def test_profiles_of_many_bytes_are_refused() -> None:
    """The size is told before them: as a number of 12, then 8 bits at a time."""
    size = 1 + (1 << 20)
    writer = BitWriter()
    writer.bits(3, 2)
    writer.bits(size & 0xFFF, 12)
    writer.bits(1, 1)
    writer.bits(size >> 12 & 0xFF, 8)
    writer.bits(1, 1)
    writer.bits(size >> 20, 8)
    with pytest.raises(CorruptImage, match="has 1,048,577 bytes; at most"):
        icc.read_profile(_bits(writer))


def test_profile_of_an_animation() -> None:
    wanted = pyvips.Operation.call("profile_load", "p3")
    data = libjxl.encode(list(frames(3)), durations=[1, 2, 3], profile=wanted, **_ANIMATED)
    assert facts(data).delays == (10, 20, 30)
    assert blob(pixels_of(data, all_frames=True), PROFILE) == wanted


@pytest.mark.parametrize(
    "space",
    [
        {"primaries": 11},
        {"transfer": 8},
        {"transfer": 65535, "gamma": 0.5},
        {"primaries": 9, "transfer": 16},
        {"primaries": 11, "white": 10},
        {"primaries": 11, "white": 10, "transfer": 16},
        {"primaries": 11, "white": 11, "transfer": 16},
    ],
    ids=["P3", "linear", "gamma", "PQ", "white", "white of PQ", "white of cinemas"],
)
def test_spaces_that_numbers_tell(space: dict[str, Any]) -> None:
    found = facts(libjxl.encode(photo(), space=space)).rgb_space
    assert found is not None
    assert found == facts(libjxl.encode(photo(), distance=1.0, space=space)).rgb_space
    expected = {
        "primaries": 0.68 if space.get("primaries") == 11 else 0.708 if "primaries" in space else 0.64
    }
    assert found.primaries[0][0] == expected["primaries"]
    assert found.primaries[3][0] == pytest.approx({10: 1 / 3, 11: 0.314}.get(space.get("white", 1), 0.3127))
    transfer = {8: ("gamma", 1.0), 65535: ("gamma", 2.0), 16: ("pq", 1.0)}.get(space.get("transfer", 13))
    assert (found.transfer, round(found.gamma, 6)) == (transfer or ("srgb", 1.0))


@pytest.mark.parametrize(("stated", "expected"), [({}, 10_000), ({"intensity_target": 600}, 600)])
def test_the_luminance_of_white_is_that_of_the_brightest_light(stated: dict[str, int], expected: int) -> None:
    found = facts(libjxl.encode(photo(), space={"primaries": 9, "transfer": 16}, **stated)).rgb_space
    assert found is not None
    assert found.peak == expected


@pytest.mark.parametrize("numbered", [{}, {"white": 1}, {"primaries": 1}, {"transfer": 13}])
@pytest.mark.parametrize("also", [{}, {"transfer": 13}])
def test_a_space_that_has_no_number(numbered: dict[str, int], also: dict[str, int]) -> None:
    own = {"white_point": (0.3457, 0.3585), "red": (0.7, 0.29), "green": (0.16, 0.8), "blue": (0.04, 0.01)}
    space = {"white": 2, "primaries": 2, "transfer": 65535, "gamma": 1 / 1.8, **own, **numbered, **also}
    found = facts(libjxl.encode(photo(), space=space)).rgb_space
    assert found is not None
    curve = ("srgb", 1.0) if space["transfer"] == 13 else ("gamma", 1.8)
    assert (found.transfer, round(found.gamma, 5)) == curve
    if space["primaries"] == 1:
        own |= {"red": (0.64, 0.33), "green": (0.3, 0.6), "blue": (0.15, 0.06)}
    if space["white"] == 1:
        own["white_point"] = (0.3127, 0.329)
    expected = [own[name] for name in ("red", "green", "blue", "white_point")]
    assert np.array(found.primaries) == pytest.approx(np.array(expected), abs=1e-5)


def test_linear_light_is_shown_as_srgb() -> None:
    light = (np.arange(256, dtype=np.uint16)[None, :, None] * 257).repeat(3, 2).repeat(8, 0)
    data = libjxl.encode(light, space={"transfer": 8})
    shown = imgsvc.to_numpy(data)[0, :, 0].astype(float)
    linear = light[0, :, 0] / 65535
    expected = np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055) * 65535
    assert np.abs(shown - expected).max() < 40


@pytest.mark.parametrize("channels", [[0], [0, 3], [0, 1, 2], [0, 1, 2, 3]])
def test_lossy_sixteen_bits_have_the_colors_of_eight(channels: list[int]) -> None:
    """The binding labels 16 bits as linear light; the header that we write says sRGB. Alpha is no light."""
    pixels = np.ascontiguousarray(transparent()[..., channels]) * np.uint16(257)
    data = save(vips(pixels), SaveSettings(format="jxl", quality=95)).data
    assert data is not None
    assert facts(data).rgb_space is None
    visible = transparent()[..., 3] > 0
    found = pixels_of(data).numpy().reshape(pixels.shape)
    assert np.abs(found[visible] / 257 - pixels[visible] / 257).mean(axis=0).max() < 3


@pytest.mark.parametrize("before", [b"", b"Exif\0\0"])
@pytest.mark.parametrize("compressed", [False, True])
def test_metadata_in_boxes(compressed: bool, before: bytes) -> None:
    boxes = {b"Exif": len(before).to_bytes(4, "big") + before + _BLOCK, b"xml ": _PACKET}
    image = pixels_of(libjxl.encode(photo(), boxes=boxes, compressed_boxes=compressed))
    assert blob(image, EXIF) == _BLOCK
    assert blob(image, XMP) == _PACKET


def test_results_keep_metadata_that_is_asked_for() -> None:
    source = libjxl.encode(photo(), boxes={b"Exif": bytes(4) + _BLOCK, b"xml ": _PACKET})
    kept = imgsvc.process(source, {"output": {"metadata": "copyright"}}).data
    assert b"Ada" in (blob(pixels_of(kept), EXIF) or b"")
    assert libjxl.times(kept) == ((), None)  # which the library reads
    assert b"Exif" not in imgsvc.process(source).data


def test_a_brotli_bomb_is_left_out() -> None:
    import imagecodecs

    bomb = bytes(imagecodecs.brotli_encode(bytes(1 << 27), level=5))
    data = libjxl.encode(photo(), boxes={b"xml ": _PACKET}) + make_box(b"brob", b"Exif" + bomb)
    assert len(bomb) < 1000
    image = pixels_of(data)
    assert blob(image, EXIF) is None
    assert blob(image, XMP) == _PACKET


@pytest.mark.parametrize("kind", ["brob", "Exif", "xml "])
@pytest.mark.parametrize("length", [0, 1, 3, 4, 5])
def test_metadata_that_ends_early_is_left_out(kind: str, length: int) -> None:
    made = libjxl.encode(photo(), boxes={b"xml ": _PACKET})
    data = made + make_box(kind.encode(), (b"Exif" if kind == "brob" else b"\0" * 4 + b"I")[:length])
    image = pixels_of(data)
    assert (blob(image, EXIF) or b"I", blob(image, XMP)) == (b"I", _PACKET)
    for policy in ("strip", "copyright"):
        output = {"keep_pixels": True, "metadata": policy}
        assert imgsvc.process(data, {"output": output}).data == imgsvc.process(made, {"output": output}).data


def test_premultiplied_colors_are_divided_by_alpha() -> None:
    straight = transparent().astype(float)
    multiplied = straight.copy()
    multiplied[..., :3] *= straight[..., 3:] / 255
    data = libjxl.encode(np.rint(multiplied).astype(np.uint8), alpha_premultiplied=1)
    found = pixels_of(data).numpy()
    opaque = straight[..., 3] > 200
    assert np.abs(found[opaque].astype(float) - straight[opaque]).max() <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_of_the_codestream_counts(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3  # which is to be ignored
    boxes = {b"Exif": bytes(4) + exif.tobytes().removeprefix(b"Exif\0\0")}
    data = libjxl.encode(photo(), orientation=orientation, boxes=boxes)
    shown = imgsvc.to_numpy(data)
    exif[0x0112] = orientation
    expected = imgsvc.to_numpy(_png(photo(), exif))
    assert np.array_equal(shown, expected)


def _png(pixels: Any, exif: Image.Exif) -> bytes:
    import io

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", exif=exif)
    return file.getvalue()


@pytest.mark.parametrize(
    ("left", "top", "width", "height"),
    [
        (5, 7, 30, 20),
        (0, 0, 96, 20),
        (0, 0, 30, 64),
        (5, 0, 91, 64),
        (0, 7, 96, 57),
        (0, 0, 96, 70),
        (0, 0, 99, 64),
    ],
)
@pytest.mark.parametrize("blended", [True, False])
def test_frames_that_cover_a_part_of_the_picture(
    left: int, top: int, width: int, height: int, blended: bool
) -> None:
    first, patch = frames(1)[0], np.full((height, width, 4), (9, 8, 7, 255), np.uint8)
    shown, crops = [first, patch, first], [None, (left, top), None]
    data = libjxl.encode(shown, durations=[1, 5, 9], crops=crops, blended=blended, **_ANIMATED)
    assert facts(data).delays == (10, 50, 90)
    shown = pixels_of(data, all_frames=True).numpy().reshape(3, *first.shape)
    expected = first.copy()
    expected[top : top + height, left : left + width] = (9, 8, 7, 255)
    assert np.array_equal(shown, [first, expected, first])


@given(
    delays=st.lists(st.integers(0, 100_000), min_size=2, max_size=5),
    plays=st.integers(0, 65_535),
    lossless=st.booleans(),
    deep_=st.booleans(),
    width=st.integers(1, 30),
    bands=st.integers(1, 4),
)
@example(delays=[1, 2], plays=0, lossless=True, deep_=False, width=3, bands=1)
@settings(max_examples=40)
def test_animations_keep_their_times_and_frames(
    delays: list[int], plays: int, lossless: bool, deep_: bool, width: int, bands: int
) -> None:
    """Frames without a time would not be shown, so they get a millisecond."""
    shown = frames(len(delays))[:, :20, :width, :bands].astype(np.uint16 if deep_ else np.uint8)
    shown *= 257 if deep_ else 1
    strip = vips(shown.reshape(-1, *shown.shape[2:])).copy()
    strip.set_type(pyvips.GValue.gint_type, "page-height", 20)
    strip.set_type(pyvips.GValue.gint_type, "loop", plays)
    strip.set_type(pyvips.GValue.array_int_type, "delay", delays)
    data = save(strip, SaveSettings(format="jxl", lossless=lossless)).data
    assert data is not None
    expected = tuple(max(1, delay) for delay in delays)
    assert libjxl.times(data) == (expected, plays)
    assert facts(data).delays == expected
    if lossless:
        assert np.array_equal(pixels_of(data, all_frames=True).numpy(), strip.numpy())


@given(numbers=st.lists(st.integers(1, 1 << 30), max_size=20))
def test_written_numbers_are_read(numbers: list[int]) -> None:
    writer = BitWriter()
    for number in numbers:
        writer.u32(number, *RATE)
    data = writer.data() or b"\0"
    reader = _reader(data)
    assert [reader.u32(*RATE) for _ in numbers] == numbers


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(0, 2)], 0),
        ([(1, 2), (15, 4)], 16),
        ([(2, 2), (255, 8)], 272),
        ([(3, 2), (5, 12), (0, 1)], 5),
        ([(3, 2), (5, 12), (1, 1), (3, 8), (0, 1)], 5 + (3 << 12)),
        ([(3, 2), (4095, 12), *[(1, 1), (255, 8)] * 6, (1, 1), (15, 4)], (1 << 64) - 1),
    ],
)
def test_numbers_of_64_bits(parts: list[tuple[int, int]], expected: int) -> None:
    writer = BitWriter()
    for part in parts:
        writer.bits(*part)
    reader = _bits(writer)
    assert (reader.u64(), reader.position) == (expected, sum(count for _, count in parts))


_FOUR, _ELEVEN, _REPEATED, _NONE = (9, 4), (33, 6), (65, 7), (17, 5)  # codes of logarithms


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(1, 1), (0, 1), (1, 1), (1, 3), (1, 1)], [0, 0, 0, 4096]),  # one symbol
        ([(1, 1), (1, 1), (0, 1), (1, 1), (1, 3), (0, 1), (1000, 12)], [1000, 0, 3096]),  # two
        ([(0, 1), (1, 1), (1, 1), (1, 3), (0, 1)], [1366, 1365, 1365]),  # all alike
        (
            [
                *((0, 1), (0, 1), (7, 3), (5, 3), (1, 1), (2, 3), (0, 2)),
                *(_FOUR, _REPEATED, (0, 1), _ELEVEN, _NONE, (5, 3)),
            ],
            [13, 13, 13, 13, 13, 4031],
        ),
        (
            [(0, 1), (0, 1), (0, 1), (0, 1), _ELEVEN, _FOUR, _NONE],  # exact to a power of two
            [4096 - 8, 8],
        ),
    ],
)
def test_distributions(parts: list[tuple[int, int]], expected: list[int]) -> None:
    """How often each symbol occurs. The one with the largest logarithm has what is left."""
    writer = BitWriter()
    for part in parts:
        writer.bits(*part)
    assert entropy._read_counts(_bits(writer), 32) == expected


def _bits(writer: BitWriter) -> BitReader:
    return _reader(writer.data() + bytes(8))


@pytest.mark.parametrize(("distance", "colors"), [(None, False), (1.0, False), (1.0, True)])
@pytest.mark.parametrize("weights", [0, 1, 2, 4, 7])
def test_numbers_that_only_decoders_need_are_skipped(
    distance: float | None, colors: bool, weights: int
) -> None:
    """Those of lossy colors and of enlarging stand between the facts and the frames."""
    data = libjxl.encode(list(frames(2)), distance=distance, durations=[2, 5], **_ANIMATED)
    header = read_header(_reader(data))
    writer = BitWriter()
    writer.copy(data, 0, header.end - 1)  # the last bit says that there are none
    writer.bits(0, 1)
    if distance is not None:
        writer.bits(int(not colors), 1)
        for _ in range(16 * colors):
            writer.bits(0x3C00, 16)
    writer.bits(weights, 3)
    for bit, count in enumerate((15, 55, 210)):
        for _ in range(count * (weights >> bit & 1)):
            writer.bits(0x3C00, 16)
    changed = writer.data() + data[-(-header.end // 8) :]
    assert libjxl.times(changed) == ((20, 50), 0)
    assert facts(changed).delays == (20, 50)


def test_times_beside_codes_of_times() -> None:
    data = libjxl.encode(list(frames(2)), durations=[2, 5], have_timecodes=1, **_ANIMATED)
    assert facts(data).delays == libjxl.times(data)[0] == (20, 50)


def test_times_after_a_preview() -> None:
    """No encoder writes one, so it is put into the header, and a frame of its size before the others."""
    data = libjxl.encode(list(frames(2)), durations=[2, 5], **_ANIMATED)
    small = libjxl.encode([frames(1)[0, :8, :8]], durations=[1], **_ANIMATED)
    header, of_small = (read_header(_reader(codestream)) for codestream in (data, small))
    start, _ = header.places.animation
    writer = BitWriter()
    writer.copy(data, 0, start - 2)
    for number, count in ((1, 1), (1, 1), (2, 2), (0, 5), (1, 3), (1, 1)):
        writer.bits(number, count)  # there is one, in eights: one, as wide as high; there is an animation
    writer.copy(data, start, header.end)
    frame = small[-(-of_small.end // 8) :]
    changed = writer.data() + frame + data[-(-header.end // 8) :]
    assert libjxl.times(changed) == ((20, 50), 0)
    assert facts(changed).delays == (20, 50)
    with pytest.raises(imgsvc.UnsupportedOperation):
        imgsvc.process(changed, {"output": {"keep_pixels": True}})


def _reader(codestream: bytes) -> BitReader:
    reader = HeaderReader(ByteSource(codestream), "JPEG XL")
    return BitReader(Codestream(reader, ((0, len(codestream)),)))


def test_real_numbers_become_sixteen_bits() -> None:
    light = np.linspace(-0.5, 1.5, 41, dtype=np.float32)[None, :, None].repeat(3, 2).repeat(4, 0)
    found = pixels_of(libjxl.encode(light))
    assert found.format == "ushort"
    assert np.array_equal(found.numpy()[0, :, 0], np.rint(light[0, :, 0].clip(0, 1) * 65535))


def test_times_beside_a_size_at_which_to_show() -> None:
    size: dict[str, Any] = {"intrinsic_xsize": 30, "intrinsic_ysize": 20}
    found = facts(libjxl.encode(list(frames(2)), durations=[2, 5], **_ANIMATED, **size))
    assert (found.width, found.delays) == (frames(1).shape[2], (20, 50))


@pytest.mark.parametrize("option", [17, 18], ids=["by frequency", "by bits"])
def test_times_of_frames_in_several_passes(option: int) -> None:
    data = libjxl.encode(list(frames(2)), distance=1.0, durations=[2, 5], options={option: 1}, **_ANIMATED)
    assert facts(data).delays == (20, 50)


@functools.cache
def _whole() -> tuple[bytes, Any]:
    data = libjxl.encode(list(frames(3)), durations=[1, 2, 3], **_ANIMATED)
    return data, pixels_of(data, all_frames=True).numpy()


@given(cuts=st.lists(st.integers(1, 3000), max_size=5))
@settings(max_examples=30)
def test_codestreams_in_parts(cuts: list[int]) -> None:
    whole, pixels = _whole()
    places = [0, *sorted({cut for cut in cuts if cut < len(whole)}), len(whole)]
    data = make_box(b"JXL ", b"\r\n\x87\n") + make_box(b"ftyp", b"jxl \0\0\0\0jxl ")
    for number, (start, end) in enumerate(pairwise(places)):
        last = 0x80000000 if end == len(whole) else 0
        data += make_box(b"jxlp", (number | last).to_bytes(4, "big") + whole[start:end])
    assert facts(data).delays == (10, 20, 30)
    assert np.array_equal(pixels_of(data, all_frames=True).numpy(), pixels)


def test_pixels_are_limited_by_the_header() -> None:
    """The file of some bytes claims a gigapixel."""
    writer = BitWriter()
    writer.bits(0x0AFF, 16)
    writer.bits(0, 1)
    for _ in range(2):
        writer.u32(32_768, (1, 9), (1, 13), (1, 18), (1, 30))
        writer.bits(0, 3 if _ == 0 else 0)
    writer.bits(0b11, 2)
    data = writer.data() + bytes(60)
    assert facts(data).width == 32_768
    with pytest.raises(ImageTooLarge):
        imgsvc.process(data, {"output": {"format": "png"}}).data  # noqa: B018


def test_inks_are_refused() -> None:
    writer = BitWriter()
    writer.bits(0x0AFF, 16)
    writer.bits(1, 1)  # 8 x 8 pixels
    writer.bits(0, 5)
    writer.bits(1, 3)
    writer.bits(0, 2)  # more metadata, without more fields
    writer.bits(0, 3)  # 8 bits
    writer.bits(1, 1)
    writer.bits(1, 2)  # one more channel
    writer.bits(0, 1)
    writer.u32(4, (0, 0), (1, 0), (2, 4), (18, 6))  # black
    with pytest.raises(UnsupportedFormat, match=r"inks \(CMYK\)"):
        facts(writer.data() + bytes(20))


@pytest.mark.parametrize(("monochrome", "extra", "expected"), [(False, 1, None), (False, 2, 5), (True, 3, 4)])
def test_stored_channels_are_counted(monochrome: bool, extra: int, expected: int | None) -> None:
    writer = BitWriter()
    writer.bits(0x0AFF, 16)
    for number, count in ((1, 1), (0, 5), (1, 3), (0, 2), (0, 3), (1, 1)):  # as above
        writer.bits(number, count)
    writer.u32(extra, (0, 0), (1, 0), (2, 4), (1, 12))
    writer.bits(1, 1)  # alpha
    for kind, more in [(2, 64), (5, 2)][: extra - 1]:  # of a spot color, and of a filter
        writer.bits(0, 1)
        writer.u32(kind, (0, 0), (1, 0), (2, 4), (18, 6))
        writer.bits(0, 3 + 2 + 2)  # 8 bits, as large as the picture, without a name
        writer.bits(0, more)
    writer.bits(0, 1)
    add_srgb(writer, gray=monochrome)
    found = facts(writer.data() + bytes(20))
    assert (found.channels, found.alpha, found.colors) == (expected, True, 1 if monochrome else 3)


_SAMPLES = ("jxl", "jxl_lossy", "jxl_alpha", "jxl_deep", "jxl_animated")


def _refusal(data: bytes) -> ImgsvcError | None:
    try:
        imgsvc.to_numpy(data, limits=imgsvc.Limits(source_pixels=1 << 20))
    except ImgsvcError as error:
        return error
    return None


@pytest.mark.slow
def test_damaged_files() -> None:
    """Files that are damaged in eight hundred ways: each is read, or refused by one sentence."""
    chance = random.Random(20)
    files = [encoded(name).data for name in _SAMPLES]
    files += [
        libjxl.encode(gray()[:, :, None], boxes={b"Exif": bytes(4) + _BLOCK}, compressed_boxes=True),
        libjxl.encode(list(frames(3)), durations=[1, 2, 3], profile=profile(), **_ANIMATED),
    ]
    count, read = 800, 0
    for number in range(count):
        data = bytearray(files[number % len(files)])
        near = len(data) if chance.random() < 0.5 else 60
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(min(near, len(data)))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(1, len(data)) :]
        refused = _refusal(bytes(data))
        read += refused is None
        assert refused is None or (refused.message.endswith(".") and "\n" not in refused.message)
    assert 0 < read < count


def test_copies_of_nothing_are_zeros() -> None:
    """Damaged profiles may begin with a copy, which the library reads from a window of zeros."""
    writer = BitWriter()
    for number, count in (
        (1, 1), (3, 2), (0, 15), (0, 2), (8, 4),  # copies begin at symbol 8, and have 3 numbers at least
        (1, 1), (0, 2),  # one distribution for all
        (1, 1), (15, 4), (1, 1), (3, 4), (0, 3), (1, 2), (0, 2), (8, 4),  # by a prefix code of symbol 8 alone
    ):  # fmt: skip
        writer.bits(number, count)
    data = writer.data() + bytes(8)
    numbers = Decoder(_reader(data), 1)
    assert [numbers.read(0) for _ in range(7)] == [0] * 7


@pytest.mark.parametrize("name", ["jxl", "jxl_lossy", "jxl_animated"])
def test_cut_files_are_damaged(name: str) -> None:
    data = encoded(name).data
    for length in range(60, len(data) - 1, max(1, len(data) // 25)):
        with pytest.raises(CorruptImage):
            imgsvc.process(data[:length], {"output": {"format": "apng"}}).data  # noqa: B018


@pytest.mark.parametrize("bands", [1, 3])
def test_a_profile_beside_loss_is_none_of_the_decoded_pixels(bands: int) -> None:
    """libjxl decodes such pictures to linear light, in which dark colors of 8 bits have few levels."""
    curve = table(np.linspace(0, 1, 256) ** 1.5)
    icc = matrix_profile(curve, SRGB, kTRC=curve)
    icc = icc if bands == 3 else icc.replace(b"mntrRGB XYZ ", b"mntrGRAYXYZ ")
    pixels = photos.coffee()[::4, ::4, :bands]
    source = libjxl.encode(pixels, distance=0.2, profile=icc)
    assert facts(source).profile
    exact = imgsvc.process(pillow(np.squeeze(pixels), "PNG", icc_profile=icc)).to_numpy().astype(int)
    found = imgsvc.process(source, {"output": {"format": "png"}}).to_numpy()
    assert np.abs(found - exact).mean() < 3
