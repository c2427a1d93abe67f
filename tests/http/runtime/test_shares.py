"""Shares: nobody takes more than is left for the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from imgsvc_http.runtime.shares import Shares

TOTAL = 60


def taken(shares: Shares, owner: str) -> int:
    """How many parts an owner gets until it gets no more."""
    count = 0
    while shares.take(owner):
        count += 1
    return count


def test_who_comes_first_leaves_something_for_all_others() -> None:
    shares = Shares(TOTAL)
    assert [taken(shares, owner) for owner in "abcd"] == [30, 15, 8, 4]
    assert not shares.used_up
    assert shares.take("e")
    assert shares.used_up


def test_one_part_may_be_everything() -> None:
    shares = Shares(TOTAL)
    assert not shares.take("a", TOTAL + 1)
    assert shares.take("a", TOTAL)
    assert not shares.take("b")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, TOTAL))))
def test_what_is_given_back_is_there_again(parts: list[tuple[str, int]]) -> None:
    shares = Shares(TOTAL)
    got = [part for part in parts if shares.take(*part)]
    assert sum(amount for _, amount in got) <= TOTAL
    for part in got:
        shares.give_back(*part)
    assert shares.take("d", TOTAL)
