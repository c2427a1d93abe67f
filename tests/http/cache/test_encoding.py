"""Entries as files: what is damaged in any way is no entry."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imgsvc_http.cache.encoding import decode, encode
from imgsvc_http.cache.entries import Entry
from imgsvc_http.cache.freshness import Freshness
from tests.http.cache.pictures import entry, picture

ENTRY = entry(1, 300)
FILE = bytes(encode(ENTRY))


@given(
    st.binary(max_size=2000),
    st.text(max_size=40),
    st.none() | st.floats(0, 2**32),
    st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3),
)
def test_what_was_written_is_read(
    body: bytes, text: str, moment: float | None, facts: dict[str, object]
) -> None:
    made = Entry(
        key=ENTRY.key,
        account="a",
        source="https://example.org/ß?" + text,
        picture=attrs.evolve(picture(), body=body, identity=text, last_modified=moment, facts=facts),
        made_at=1.5,
        asked_at=2.5,
        freshness=Freshness(60, stale=False, stated={"max-age": 60.5}),
        epoch=7,
    )
    assert decode(made.key, bytes(encode(made))) == made
    assert encode(made).size == len(bytes(encode(made)))


@pytest.mark.parametrize("bit", [0, 7])
def test_one_flipped_bit_anywhere_is_noticed(bit: int) -> None:
    for place in range(len(FILE)):
        damaged = bytearray(FILE)
        damaged[place] ^= 1 << bit
        assert decode(ENTRY.key, bytes(damaged)) is None


def test_a_cut_or_longer_file_is_noticed() -> None:
    for end in range(len(FILE)):
        assert decode(ENTRY.key, FILE[:end]) is None
    assert decode(ENTRY.key, FILE + b"x") is None


def test_the_file_of_another_key_is_no_entry() -> None:
    assert decode(entry(2).key, FILE) is None


@given(st.binary(max_size=300))
def test_any_other_file_is_no_entry(data: bytes) -> None:
    assert decode(ENTRY.key, data) is None
