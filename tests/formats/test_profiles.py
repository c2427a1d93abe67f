"""Which ICC profiles are that of sRGB: told by their numbers, whatever their names."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms

import imgsvc_core as imgsvc
from imgsvc_core.formats.icc import is_srgb
from tests.support import photos
from tests.support.handmade import pillow, png_chunk

SRGB = ((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.7141))
P3 = ((0.51512, 0.2412, -0.00105), (0.29198, 0.69225, 0.04189), (0.1571, 0.06657, 0.78407))


def fixed(*numbers: float) -> bytes:
    return struct.pack(f">{len(numbers)}i", *(round(65536 * number) for number in numbers))


def decoded(value: Any) -> Any:
    return np.where(value <= 0.04045, value / 12.92, (np.maximum(value + 0.055, 0) / 1.055) ** 2.4)


def table(light: Any) -> bytes:
    samples = np.rint(np.asarray(light) * 65535).astype(">u2")
    return b"curv\0\0\0\0" + struct.pack(">I", len(samples)) + bytes(samples.tobytes())


def formula(kind: int, *numbers: float) -> bytes:
    return b"para\0\0\0\0" + struct.pack(">HH", kind, 0) + fixed(*numbers)


LINEAR = table([])
GAMMA = b"curv\0\0\0\0" + struct.pack(">IH", 1, 563) + b"\0\0"  # 2.2
SAMPLED = table(decoded(np.linspace(0, 1, 1024)))
FORMULA = formula(3, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
LONG_FORMULA = formula(4, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045, 0, 0)


def profile(
    curve: bytes, colorants: tuple[tuple[float, ...], ...] = SRGB, name: str = "sRGB", **more: bytes
) -> bytes:
    """A display profile of a matrix and one curve for all three channels."""
    text = name.encode() + b"\0"
    tags = {
        b"desc": b"desc\0\0\0\0" + struct.pack(">I", len(text)) + text + bytes(78),
        b"cprt": b"text\0\0\0\0none\0",
        b"wtpt": b"XYZ \0\0\0\0" + fixed(0.9642, 1, 0.8249),
        **{channel + b"TRC": curve for channel in (b"r", b"g", b"b")},
        **{
            channel + b"XYZ": b"XYZ \0\0\0\0" + fixed(*column)
            for channel, column in zip((b"r", b"g", b"b"), colorants, strict=True)
        },
        **{key.encode(): body for key, body in more.items()},
    }
    start = 132 + 12 * len(tags)
    entries, bodies = b"", b""
    for key, body in tags.items():
        entries += key + struct.pack(">II", start + len(bodies), len(body))
        bodies += body + bytes(-len(body) % 4)
    head = bytearray(128)
    struct.pack_into(">I4xI", head, 0, start + len(bodies), 0x02400000)
    head[12:24], head[36:40] = b"mntrRGB XYZ ", b"acsp"
    head[68:80] = fixed(0.9642, 1, 0.8249)
    return bytes(head) + struct.pack(">I", len(tags)) + entries + bodies


OTHERS = {
    "linear": profile(LINEAR, name="GIMP built-in Linear sRGB"),
    "linear by formula": profile(formula(0, 1.0), name="sRGB linear"),
    "gamma": profile(GAMMA, name="sRGB gamma 2.2"),
    "gamma by formula": profile(formula(0, 2.2), name="sRGB-elle-V2-g22.icc"),
    "wide": profile(FORMULA, P3, name="sRGB for displays of P3"),
    "extended": profile(table(np.clip(decoded(np.linspace(-0.53, 1.68, 2048)), 0, 1)), name="esRGB"),
}
SAME = {
    "sampled": profile(SAMPLED, name="anything"),
    "formula": profile(FORMULA, name="anything"),
    "long formula": profile(LONG_FORMULA, name="c2"),
    "of LittleCMS": ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes(),
}


def shown(data: bytes | None) -> Any:
    return np.asarray(Image.open(io.BytesIO(data or b"")).convert("RGB")).astype(int)


@pytest.mark.parametrize("name", OTHERS)
def test_a_profile_that_only_bears_the_name_is_honoured(name: str) -> None:
    source = Image.fromarray(photos.coffee()[::4, ::4])
    expected = ImageCms.profileToProfile(
        source,
        ImageCms.ImageCmsProfile(io.BytesIO(OTHERS[name])),
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    data = pillow(source, "PNG", icc_profile=OTHERS[name])
    found = shown(imgsvc.process(data).data)
    assert np.abs(found - np.asarray(source)).max() > 5
    assert np.abs(found - np.asarray(expected)).max() <= 2


@pytest.mark.parametrize("name", SAME)
def test_a_profile_of_srgb_stays_and_changes_nothing(name: str) -> None:
    source = photos.coffee()[::4, ::4]
    result = imgsvc.process(pillow(source, "PNG", icc_profile=SAME[name]))
    assert np.array_equal(shown(result.data), source)
    assert Image.open(io.BytesIO(result.data or b"")).info["icc_profile"] == SAME[name]


@pytest.mark.parametrize("points", [1024, 4096, 256])
def test_sampled_curves(points: int) -> None:
    light = decoded(np.linspace(0, 1, points))
    assert is_srgb(profile(table(light)))
    assert not is_srgb(profile(table(light**1.05)))
    assert not is_srgb(profile(table(light * 0.97)))


@pytest.mark.parametrize(
    "curve",
    [
        formula(1, 2.2, 1 / 1.1, 0.1 / 1.1),
        formula(2, 2.4, 1 / 1.055, 0.055 / 1.055, 0.0),
        formula(3, 2.2, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045),
        formula(4, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045, 0.02, 0),
        formula(4, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045, 0, 0.02),
        formula(4, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.3, 0, 0),
        formula(4, 2.4, 1 / 1.055, 0.055 / 1.055, 1 / 4.5, 0.04045, 0, 0),
        formula(3, 2.4, 1 / 1.055, 0.055 / 1.055),
        b"para",
    ],
)
def test_other_formulas(curve: bytes) -> None:
    assert not is_srgb(profile(curve))


@pytest.mark.parametrize("place", list(np.ndindex(3, 3)))
def test_colorants_near_to_those_of_srgb(place: tuple[int, int]) -> None:
    for difference, same in ((0.0005, True), (-0.0005, True), (0.004, False), (-0.004, False)):
        colorants = np.array(SRGB)
        colorants[place] += difference
        assert is_srgb(profile(FORMULA, tuple(map(tuple, colorants)))) == same


def test_tables_of_colors_go_before_the_matrix() -> None:
    assert is_srgb(profile(FORMULA))
    assert not is_srgb(profile(FORMULA, A2B0=b"mft2" + bytes(100)))


@given(st.data())
def test_damaged_profiles_are_no_error(data: st.DataObject) -> None:
    whole = bytearray(data.draw(st.sampled_from([*SAME.values(), *OTHERS.values()])))
    for place in data.draw(st.lists(st.integers(0, min(len(whole), 700) - 1), max_size=5)):
        whole[place] = data.draw(st.integers(0, 255))
    is_srgb(bytes(whole[: data.draw(st.integers(0, len(whole)))]))


def test_a_picture_with_a_profile_keeps_its_alpha() -> None:
    pixels = photos.cut_out("coffee")
    result = imgsvc.process(pillow(Image.fromarray(pixels), "PNG", icc_profile=OTHERS["wide"]))
    with Image.open(io.BytesIO(result.data or b"")) as found:
        assert np.array_equal(found.getchannel("A"), pixels[..., 3])


def moved(data: bytes, kind: bytes, before: bytes) -> bytes:
    """Move a chunk of a PNG to the place before another one."""
    start = data.index(kind) - 4
    chunk = data[start : start + 12 + int.from_bytes(data[start : start + 4], "big")]
    rest = data.replace(chunk, b"")
    place = rest.index(before) - 4
    return rest[:place] + chunk + rest[place:]


@pytest.mark.parametrize("animated", [False, True])
def test_profiles_that_libpng_leaves_out_count_as_in_browsers(*, animated: bool) -> None:
    source = Image.fromarray(photos.coffee()[::4, ::4]).quantize(64)
    frames = {"save_all": True, "append_images": [source.rotate(180)]} if animated else {}
    swapped = bytearray(OTHERS["wide"])
    swapped[64:68] = b"\1\0\0\0"  # the intent in the wrong order of bytes, as Adobe wrote it
    usual = pillow(source, "PNG", icc_profile=OTHERS["wide"], **frames)
    odd = pillow(source, "PNG", icc_profile=bytes(swapped), **frames)
    late = moved(usual, b"iCCP", b"IDAT")
    second = usual[:33] + png_chunk(b"sRGB", b"\0") + usual[33:]
    plain = pillow(source, "PNG", **frames)
    expected = shown(imgsvc.process(usual).data)
    assert np.abs(expected - shown(imgsvc.process(plain).data)).max() > 5
    for data in (odd, late, second):
        assert np.array_equal(shown(imgsvc.process(data).data), expected)
