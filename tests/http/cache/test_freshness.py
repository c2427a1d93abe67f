"""Freshness by the headers of a source."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from imgsvc_http.cache.freshness import Freshness, FreshnessBounds, soonest

BOUNDS = FreshnessBounds(default_seconds=100, min_seconds=0, max_seconds=1000)
DATE = "Mon, 23 Nov 2026 04:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 100),
        ({"Cache-Control": "public"}, 100),
        ({"Cache-Control": "max-age=60"}, 60),
        ({"cache-control": "Max-Age=60, public"}, 60),
        ({"Cache-Control": "Max-Age=60, S-MaxAge=90"}, 90),
        ({"Cache-Control": "max-age=60", "Age": "20"}, 40),
        ({"Cache-Control": "max-age=60", "Age": "200"}, 0),
        ({"Cache-Control": "max-age=99999999999999999999"}, 1000),
        ({"Cache-Control": "max-age=999999999999", "Age": "3000000000"}, 0),  # both mean 2**31
        ({"Cache-Control": "max-age=-1"}, 0),
        ({"Cache-Control": "max-age=soon"}, 0),
        ({"Cache-Control": "no-cache, max-age=60"}, 0),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 04:01:30 GMT"}, 90),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 03:01:30 GMT"}, 0),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 06:01:30 +0200"}, 90),
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


def _told(*headers: str) -> Freshness:
    """What holds for a picture of sources with these headers, "" for none."""
    return soonest(BOUNDS.freshness(CIMultiDict({"Cache-Control": one} if one else {})) for one in headers)


def test_a_picture_of_one_source_is_as_fresh_as_it() -> None:
    for header in ("", "max-age=60", "private, max-age=5, must-revalidate", "no-store", "no-cache"):
        assert _told(header) == BOUNDS.freshness(CIMultiDict({"Cache-Control": header}))


@pytest.mark.parametrize(
    ("headers", "seconds", "stated", "conditions"),
    [
        (("max-age=60", "max-age=90"), 60, {"max-age": 60}, ""),
        (("max-age=900", ""), 100, {"max-age": 900}, ""),
        (("", "max-age=60"), 60, {"max-age": 60}, ""),
        (("", ""), 100, {}, ""),
        (("max-age=60, s-maxage=900", "max-age=200"), 200, {"max-age": 60, "s-maxage": 200}, ""),
        (("s-maxage=30", "max-age=200"), 30, {"s-maxage": 30, "max-age": 200}, ""),
        (("max-age=60, immutable", "max-age=90, immutable"), 60, {"max-age": 60}, "immutable"),
        (("max-age=60, immutable", "max-age=90"), 60, {"max-age": 60}, ""),
        (("max-age=60, immutable", ""), 60, {"max-age": 60}, "immutable"),
        (("max-age=60", "max-age=90, must-revalidate"), 60, {"max-age": 60}, "must-revalidate"),
        (("max-age=60, stale-if-error=9", "no-cache"), 0, {"max-age": 0}, "must-revalidate"),
    ],
)
def test_of_several_sources_the_shortest_ages_and_strictest_words_hold(
    headers: tuple[str, str], seconds: float, stated: dict[str, float], conditions: str
) -> None:
    for order in (headers, headers[::-1]):
        found = _told(*order)
        assert (found.seconds, dict(found.stated), found.conditions) == (seconds, stated, conditions)


@pytest.mark.parametrize("strict", ["no-cache", "max-age=60, must-revalidate", "proxy-revalidate"])
@pytest.mark.parametrize("other", ["", "max-age=9", "max-age=600"])
def test_one_source_that_may_not_be_stale_is_enough(strict: str, other: str) -> None:
    assert not _told(strict, other).stale
    assert not _told(other, strict).stale
    assert _told(other, other).stale


def test_the_narrowest_scope_holds() -> None:
    for narrow, wide in (("private", ""), ("no-store", ""), ("no-store", "private")):
        assert _told(narrow, wide).scope == _told(wide, narrow).scope == narrow
