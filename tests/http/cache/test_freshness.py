"""Freshness by the headers of a source."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from imgsvc_http.cache.freshness import FreshnessBounds

BOUNDS = FreshnessBounds(default_seconds=100, min_seconds=0, max_seconds=1000)
DATE = "Mon, 23 Nov 2026 04:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 100),
        ({"Cache-Control": "public"}, 100),
        ({"Cache-Control": "max-age=60"}, 60),
        ({"cache-control": "Max-Age=60, public"}, 60),
        ({"Cache-Control": "max-age=60, s-maxage=90"}, 90),
        ({"Cache-Control": "max-age=60", "Age": "20"}, 40),
        ({"Cache-Control": "max-age=60", "Age": "200"}, 0),
        ({"Cache-Control": "max-age=99999999999999999999"}, 1000),
        ({"Cache-Control": "max-age=-1"}, 0),
        ({"Cache-Control": "max-age=soon"}, 0),
        ({"Cache-Control": "no-cache, max-age=60"}, 0),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 04:01:30 GMT"}, 90),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 03:01:30 GMT"}, 0),
        ({"Date": DATE, "Expires": "0"}, 0),
        ({"Date": "soon", "Expires": DATE}, 0),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 04:01:30 GMT", "Cache-Control": "max-age=5"}, 5),
    ],
)
def test_freshness_is_what_the_source_says(headers: dict[str, str], seconds: float) -> None:
    found = BOUNDS.freshness(CIMultiDict(headers))
    assert (found.seconds, found.scope) == (seconds, "public")


@pytest.mark.parametrize(("seconds", "left"), [(90, 90), (-90, 0)])
def test_an_answer_without_a_date_is_of_now(seconds: int, left: int) -> None:
    expires = CIMultiDict(Expires=formatdate(time.time() + seconds, usegmt=True))
    assert BOUNDS.freshness(expires).seconds == pytest.approx(left, abs=2)


@pytest.mark.parametrize(
    ("directive", "scope"),
    [
        ("no-store", "no-store"),
        ("max-age=9, no-store, private", "no-store"),
        ("private", "private"),
        ("PRIVATE, max-age=60", "private"),
        ('max-age=60, private="Set-Cookie"', "private"),
        ('extension="private, no-store", max-age=60', "public"),
    ],
)
def test_who_may_keep_it_is_what_the_source_says_whatever_the_minimum(directive: str, scope: str) -> None:
    insisting = FreshnessBounds(default_seconds=100, min_seconds=50, max_seconds=1000)
    assert insisting.freshness(CIMultiDict({"Cache-Control": directive})).scope == scope


@pytest.mark.parametrize(
    ("headers", "stated"),
    [
        ({}, {}),
        ({"Cache-Control": "public"}, {}),
        ({"Cache-Control": "max-age=2000, s-maxage=90", "Age": "20"}, {"max-age": 1980, "s-maxage": 70}),
        ({"Cache-Control": "max-age=60, s-maxage=90", "Age": "80"}, {"max-age": 0, "s-maxage": 10}),
        ({"Cache-Control": "private, max-age=60, s-maxage=90"}, {"max-age": 60}),
        ({"Cache-Control": "no-cache, max-age=60"}, {"max-age": 0}),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 04:01:30 GMT"}, {"max-age": 90}),
        ({"Date": "Mon Nov 23 04:00:00 2026", "Expires": "Monday, 23-Nov-26 04:01:30 GMT"}, {"max-age": 90}),
    ],
)
def test_the_ages_that_the_source_states_are_not_bounded(
    headers: dict[str, str], stated: dict[str, float]
) -> None:
    assert BOUNDS.freshness(CIMultiDict(headers)).stated == stated


def test_several_lines_are_one_list() -> None:
    lines = CIMultiDict([("Cache-Control", "no-store"), ("cache-control", "max-age=60")])
    found = BOUNDS.freshness(lines)
    assert (found.scope, found.seconds) == ("no-store", 0)


def test_304_says_only_what_has_changed() -> None:
    known = BOUNDS.freshness(CIMultiDict({"Cache-Control": "max-age=60, must-revalidate"}))
    assert BOUNDS.renewed(known, CIMultiDict({"ETag": '"1"'})) == known
    assert BOUNDS.renewed(known, CIMultiDict({"Cache-Control": "no-store"})).scope == "no-store"
    assert BOUNDS.renewed(known, CIMultiDict({"Expires": "0"})).seconds == 0


@pytest.mark.parametrize("directive", ["no-cache", "max-age=0, must-revalidate", "Proxy-Revalidate"])
def test_what_must_be_revalidated_is_never_stale(directive: str) -> None:
    assert not BOUNDS.freshness(CIMultiDict({"Cache-Control": directive})).stale
    assert BOUNDS.freshness(CIMultiDict({"Cache-Control": "max-age=60"})).stale


def test_bounds_win_over_the_source() -> None:
    bounds = FreshnessBounds(default_seconds=100, min_seconds=50, max_seconds=70)
    for header, seconds in (("max-age=1", 50), ("no-cache", 50), ("max-age=60", 60), ("max-age=90", 70)):
        assert bounds.freshness(CIMultiDict({"Cache-Control": header})).seconds == seconds
    assert bounds.freshness().seconds == 70


@given(st.dictionaries(st.sampled_from(["Cache-Control", "Age", "Expires", "Date"]), st.text(max_size=40)))
def test_no_header_is_an_error(headers: dict[str, str]) -> None:
    assert 0 <= BOUNDS.freshness(CIMultiDict(headers)).seconds <= 1000
