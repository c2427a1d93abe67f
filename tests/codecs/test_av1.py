"""Colors that streams of AV1 state, in sequence headers of several encoders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_core.codecs.headers.av1 import read_code_points

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
    assert read_code_points(stream) == (12, 16)
    assert read_code_points(stream + b"\x32\x05more") == (12, 16)
    for end in range(len(stream) - 3):
        assert read_code_points(stream[:end]) in (None, (12, 16))


def test_a_stream_that_does_not_describe_its_colors() -> None:
    still = bytearray.fromhex("12000a0918157fbdba18200408")
    still[8] &= ~2  # the flag before the code points
    assert read_code_points(bytes(still)) is None


@given(st.binary(max_size=80))
def test_damage_states_nothing_or_something(data: bytes) -> None:
    found = read_code_points(data)
    assert found is None or max(found) < 256
