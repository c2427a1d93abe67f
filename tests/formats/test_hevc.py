"""Colors that streams of HEVC state, in parameter sets as x265 writes them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.formats.bits import StreamColors
from imgsvc_core.formats.heif.hevc import read_colors

COLORS = StreamColors((12, 16), full_range=False)

# Display P3 with the curve of PQ.
PARAMETER_SETS = {
    "4:2:0": "4201010408000003009fa800000300001ea02083165bab932bc05a860801020000030002000003000a10",
    "4:4:4, 10 bits, cropped": "4201010408000003009c2800000300001e900490739e"
    "76cb757265780b50c100204000000300400000030142",
    "scaling lists": "4201010408000003009fa800000300001ea02083165bab9395e02d430400810000030001000003000508",
    "sets of references": "4201010408000003009e0800000300003c90014101e2cb2b34926456b5fd37fd2f016e18200208"
    "000003000800000300c840",
    "gray, another aspect, overscan": "4201010408000003009fe800000300001ec0820c596e"
    "ae4cafff0011000bf70c1002040000030004000003001420",
}

FULL_RANGE = ("sets of references", "gray, another aspect, overscan")


def golombs(*numbers: int) -> str:
    """Numbers in Exponential-Golomb code."""
    return "".join((digits := f"{number + 1:b}").rjust(2 * len(digits) - 1, "0") for number in numbers)


def configuration(unit: bytes) -> bytes:
    """The configuration of a picture with an SEI message and a parameter set."""
    arrays = b"".join(
        bytes([0x80 | kind]) + struct.pack(">HH", 1, len(content)) + content
        for kind, content in ((39, b"\x4e\x01\x05"), (33, unit))
    )
    return bytes(22) + b"\x02" + arrays


@pytest.mark.parametrize("name", PARAMETER_SETS)
def test_parameter_sets(name: str) -> None:
    data = configuration(bytes.fromhex(PARAMETER_SETS[name]))
    colors = COLORS._replace(full_range=name in FULL_RANGE)
    assert read_colors(data) == colors
    for end in range(len(data)):
        assert read_colors(data[:end]) in (None, colors)


def unit_with(references: str) -> bytes:
    """What x265 does not write: layers in time, separate planes, samples without coding, references."""
    levels = "11" + "01" + "0" * 12 + "1" * 96 + "1" * 8
    size = golombs(0, 3) + "0" + golombs(64, 48) + "0" + golombs(2, 2)
    orders = golombs(4) + "1" + golombs(*[1] * 9)
    blocks = golombs(*[0] * 6) + "0" + "00" + "1" + "0" * 8 + golombs(0, 0) + "0"
    colors = "1" + "0" + "0" + "1" + "101" + "0" + "1" + f"{12:08b}{16:08b}{6:08b}"
    bits = "0000" + "010" + "1" + "1" * 96 + levels + size + orders + blocks + references + colors
    content = int(bits.ljust(-(-len(bits) // 8) * 8, "1"), 2)
    return bytes((66, 1)) + content.to_bytes(-(-len(bits) // 8), "big")


LONG_TERM = "1" + golombs(2) + 2 * ("10101010" + "1") + "00"
NEAR = "".join((golombs(2, 1), golombs(0), "1", golombs(1), "1", golombs(0), "1"))  # -1, -3; 1
MOVED_BACK = "1" + "1" + golombs(0) + "1" + "01" + "00" + "1"  # -2, -4, left out, -1
MOVED_ON = "1" + "0" + golombs(0) + 4 * "1"  # 0, which is none, -1, -3; 1
REFERENCES = {
    "none": golombs(0) + LONG_TERM,
    "a set": golombs(1) + NEAR + "000",
    "sets from sets": golombs(4) + NEAR + MOVED_BACK + MOVED_ON + MOVED_BACK + LONG_TERM,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_references_to_other_pictures(name: str) -> None:
    assert read_colors(configuration(unit_with(REFERENCES[name]))) == COLORS


def test_a_picture_without_parameters() -> None:
    assert read_colors(bytes(23)) is None


@given(st.binary(max_size=80))
def test_damage_states_nothing_or_something(data: bytes) -> None:
    found = read_colors(configuration(data))
    assert found is None or max(found.code_points or (0,)) < 256
