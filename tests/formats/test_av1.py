"""Colors that streams of AV1 state, in sequence headers of several encoders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.formats.bits import StreamColors
from imgsvc_core.formats.heif.av1 import read_colors

# Display P3 with the curve of PQ, as ffmpeg writes it.
STREAMS = {
    "libaom": "12000a0d00000002aff79f5f3218200408",
    "libaom, 12 bits": "12000a0d40000002aff79f5f3d0c100208",
    "libaom, 4:4:4": "12000a0d20000002aff79f5f3430400840",
    "libaom, realtime": "12000a0d00000002aff79b5f2618200540",
    "libaom, still picture": "12000a0918157fbdba18200408",
    "SVT-AV1, with timing": "12000a16040000000400000066d000002aabfde357ca86080102",
}


@pytest.mark.parametrize("name", STREAMS)
def test_encoders(name: str) -> None:
    stream = bytes.fromhex(STREAMS[name])
    colors = StreamColors((12, 16), full_range=name == "libaom, realtime")
    assert read_colors(stream) == colors
    assert read_colors(stream + b"\x32\x05more") == colors
    for end in range(len(stream) - 3):
        assert read_colors(stream[:end]) in (None, colors)


def test_a_stream_that_does_not_describe_its_colors() -> None:
    still = bytearray.fromhex("12000a0918157fbdba18200408")
    still[8] &= ~2  # the flag before the code points
    assert read_colors(bytes(still)) == StreamColors(None, full_range=False)


@given(st.binary(max_size=80))
def test_damage_states_nothing_or_something(data: bytes) -> None:
    found = read_colors(data)
    assert found is None or max(found.code_points or (0,)) < 256
