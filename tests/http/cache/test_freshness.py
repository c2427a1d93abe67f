"""Freshness by the headers of a source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
        ({"Expires": DATE}, 0),
        ({"Date": DATE, "Expires": "Mon, 23 Nov 2026 04:01:30 GMT", "Cache-Control": "max-age=5"}, 5),
    ],
)
def test_freshness_is_what_the_source_says(headers: dict[str, str], seconds: float) -> None:
    assert BOUNDS.freshness(headers).seconds == seconds
    assert BOUNDS.freshness(headers).store


@pytest.mark.parametrize("directive", ["no-store", "private", "PRIVATE, max-age=60", "max-age=9, no-store"])
def test_what_must_not_be_stored_is_not_whatever_the_minimum(directive: str) -> None:
    insisting = FreshnessBounds(default_seconds=100, min_seconds=50, max_seconds=1000)
    assert not insisting.freshness({"Cache-Control": directive}).store


@pytest.mark.parametrize("directive", ["no-cache", "max-age=0, must-revalidate", "Proxy-Revalidate"])
def test_what_must_be_revalidated_is_never_stale(directive: str) -> None:
    assert not BOUNDS.freshness({"Cache-Control": directive}).stale
    assert BOUNDS.freshness({"Cache-Control": "max-age=60"}).stale


def test_bounds_win_over_the_source() -> None:
    bounds = FreshnessBounds(default_seconds=100, min_seconds=50, max_seconds=70)
    for header, seconds in (("max-age=1", 50), ("no-cache", 50), ("max-age=60", 60), ("max-age=90", 70)):
        assert bounds.freshness({"Cache-Control": header}).seconds == seconds
    assert bounds.freshness().seconds == 70


@given(st.dictionaries(st.sampled_from(["Cache-Control", "Age", "Expires", "Date"]), st.text(max_size=40)))
def test_no_header_is_an_error(headers: dict[str, str]) -> None:
    assert 0 <= BOUNDS.freshness(headers).seconds <= 1000
