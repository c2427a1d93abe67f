"""Entries as files: what is damaged in any way is no entry."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from imgsvc_http.cache.encoding import decode, encode
from imgsvc_http.cache.entries import Entry, entry_key
from imgsvc_http.cache.freshness import Freshness
from imgsvc_http.receiving.idempotency import fingerprint
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


_PARTS = st.lists(st.text("ab/\0", max_size=3), min_size=2, max_size=4)


@pytest.mark.parametrize(
    "digest",
    [
        lambda parts: entry_key(*parts),
        lambda parts: fingerprint(*(part.encode() for part in parts)),
    ],
    ids=["cache", "idempotency"],
)
@given(one=_PARTS, other=_PARTS)
@example(one=["ab", "c"], other=["a", "bc"])
@example(one=["a", "b"], other=["a", "b", ""])
@example(one=["a\0", "b"], other=["a", "\0b"])
def test_other_parts_are_another_key(
    digest: Callable[[list[str]], str], one: list[str], other: list[str]
) -> None:
    assert (digest(one) == digest(other)) == (one == other)
