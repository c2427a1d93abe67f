"""Conditions of requests as RFC 9110 orders them, and what sources say about caches as RFC 9111 has it."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from multidict import CIMultiDict
from yarl import URL

from imgsvc_urls import Signer
from tests.http.calls import Reply, assert_failure, call
from tests.http.service_process import Service, running
from tests.http.ways.conftest import Site, at_once, signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded
from tests.support.folders import contents

pytestmark = pytest.mark.asyncio

BEFORE, CHANGED, AFTER = (f"Sun, 06 Nov 1994 08:49:{second} GMT" for second in (36, 37, 38))
PICTURE = encoded.png().data


@pytest.fixture(scope="module", params=[False, True], ids=["own age", "the source's age"])
def source_age(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def passing(
    source_age: bool, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Signer]]:
    """A service that asks the source before it answers what is not fresh, and what signs for it."""
    settings = {
        "delivery.origins": json.dumps({"web": f"{web.url}/pictures/"}),
        "delivery.source_age": source_age,
        "fetch.private_allowed": "127.0.0.1",
        "cache.stale_seconds": 0,
    }
    with running(tmp_path_factory.mktemp("conditions") / "state", settings) as service:
        yield service, signer_for(service)


@pytest_asyncio.fixture
async def keeping(passing: tuple[Service, Signer], web: WebOrigin) -> AsyncIterator[Site]:
    service, signer = passing
    async with service.client(key="") as client:
        yield Site(service, client, signer, service.state, web)
    web.pages.clear()
    web.log.clear()


async def get(site: Site, url: str, *lines: tuple[str, str], method: str = "GET") -> Reply:
    """Get a URL with these lines of headers."""
    address: Any = URL(f"{site.service.url}{url}", encoded=True)
    return await call(site.client, method, address, headers=CIMultiDict(lines), skip_auto_headers=("Accept",))


@pytest.fixture(params=["web/dated.jpg", "photos/photo.jpg"])
def dated(request: pytest.FixtureRequest, site: Site) -> str:
    """The URL of a picture whose source is at a web server, or a file."""
    headers = {"Last-Modified": CHANGED, "Cache-Control": "max-age=3600"}
    site.web.pages["/pictures/dated.jpg"] = Page(encoded.jpeg().data, headers)
    return site.signer.url(request.param, resize="26x")


DAY = 86_400


def _http_date(unix_time: float, form: str = "%a, %d %b %Y %H:%M:%S GMT") -> str:
    return time.strftime(form, time.gmtime(unix_time))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_conditions_and_their_order(site: Site, dated: str, method: str) -> None:
    first = await get(site, dated)
    etag, changed = first.headers["ETag"], first.headers["Last-Modified"]
    at = time.mktime(time.strptime(changed, "%a, %d %b %Y %H:%M:%S GMT")) - time.timezone
    before, after = _http_date(at - 1), _http_date(at + 1)
    other, old = '"another"', f'W/{etag}, "x"'
    for lines, status in {
        (("If-Modified-Since", changed),): 304,
        (("If-Modified-Since", after),): 304,
        (("If-Modified-Since", before),): 200,
        (("If-Modified-Since", _http_date(at, "%A, %d-%b-%y %H:%M:%S GMT")),): 304,
        (("If-Modified-Since", _http_date(at, "%a %b %e %H:%M:%S %Y")),): 304,
        (("If-Modified-Since", _http_date(at - 1, "%a %b %e %H:%M:%S %Y")),): 200,
        (("If-Modified-Since", "tomorrow"),): 200,
        (("If-Modified-Since", after), ("If-Modified-Since", after)): 200,
        (("If-Modified-Since", after), ("If-None-Match", other)): 200,
        (("If-Modified-Since", before), ("If-None-Match", etag)): 304,
        (("If-None-Match", other), ("If-None-Match", old)): 304,
        (("If-None-Match", "*"),): 304,
        (("If-Unmodified-Since", changed),): 200,
        (("If-Unmodified-Since", before),): 412,
        (("If-Unmodified-Since", "yesterday"),): 200,
        (("If-Unmodified-Since", before), ("If-Match", etag)): 200,
        (("If-Unmodified-Since", before), ("If-None-Match", etag)): 412,
        (("If-Match", other), ("If-Match", etag)): 200,
        (("If-Match", f"W/{etag}"),): 412,
        (("If-Match", other), ("If-None-Match", etag)): 412,
        (("If-Match", etag), ("If-None-Match", etag)): 304,
        (("If-Match", "*"), ("If-Modified-Since", changed)): 304,
        (("Range", "bytes=0-9"), ("If-Modified-Since", changed)): 304,
        (("Range", "bytes=0-9"), ("If-Unmodified-Since", before)): 412,
    }.items():
        reply = await get(site, dated, *lines, method=method)
        assert reply.status == status, lines
        if status == 304:
            assert reply.body == b""
            for name in ("ETag", "Cache-Control"):
                assert reply.headers[name] == first.headers[name]
            assert "Content-Type" not in reply.headers


async def test_what_was_changed_later_than_expected_is_told(site: Site, dated: str) -> None:
    reply = await get(site, dated, ("If-Unmodified-Since", "Sat, 05 Nov 1994 08:49:37 GMT"))
    document = assert_failure(reply, 412, "precondition_failed", "If-Unmodified-Since", "05 Nov 1994")
    assert "must be no earlier than Last-Modified of the image" in document["message"]


async def test_a_date_tells_nothing_of_presets_which_change_without_their_source(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", preset="card")
    first = await get(site, url)
    assert "Last-Modified" not in first.headers
    changed = "If-Modified-Since", first.headers["Date"]
    assert (await get(site, url, changed)).status == 200
    other = site.signer.url("photos/photo.jpg", preset="card", filename="other")  # not answered before
    assert (await get(site, other, changed)).status == 200
    assert (await get(site, url, ("If-None-Match", first.headers["ETag"]))).status == 304


@pytest.mark.parametrize("headers", [{}, {"Last-Modified": "Mon, 01 Jan 0001 00:00:00 GMT"}])
async def test_a_date_tells_nothing_of_a_source_without_one(site: Site, headers: dict[str, str]) -> None:
    """Or with the zero of a program that knows none."""
    site.web.pages["/pictures/undated.png"] = Page(PICTURE, headers)
    url = site.signer.url("web/undated.png", resize="26x", version=str(len(headers)))
    assert "Last-Modified" not in (await get(site, url)).headers
    for _ in range(2):
        for name in ("If-Modified-Since", "If-Unmodified-Since"):
            assert (await get(site, url, (name, AFTER))).status == 200


async def test_all_lines_of_accept_count_each_time(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", resize="27x", format="auto")
    for _ in range(2):
        for lines, format in (
            (("image/png", "image/webp;q=0.9", "*/*"), "image/webp"),
            (("image/png", "image/avif"), "image/avif"),
            (("image/png",), "image/jpeg"),
        ):
            reply = await get(site, url, *(("Accept", line) for line in lines))
            assert reply.headers["Content-Type"] == format


@pytest.mark.parametrize(
    ("says", "passed"),
    [
        ("no-store", "no-store"),
        ("max-age=60, no-store, private", "no-store"),
        ("private", "private, max-age=86400"),
        ("private, max-age=60", "private, max-age=60"),
        ("max-age=60", "public, max-age=60"),
        ("max-age=60, s-maxage=600", "public, max-age=60, s-maxage=600"),
        ("max-age=60, must-revalidate", "public, max-age=60, must-revalidate"),
        ("no-cache", "public, max-age=0, must-revalidate"),
        (
            "max-age=60, immutable, proxy-revalidate, stale-if-error=60, stale-while-revalidate=x",
            "public, max-age=60, proxy-revalidate, immutable, stale-if-error=60",
        ),
        ("public", "public, max-age=86400"),
    ],
)
async def test_what_a_source_says_of_caches_is_passed_on(
    keeping: Site, says: str, passed: str, source_age: bool
) -> None:
    """Who may keep the picture is, and for how long if the setting says so."""
    path = re.sub("[^a-z0-9]", "-", says) + ".png"
    keeping.web.pages[f"/pictures/{path}"] = Page(PICTURE, {"Cache-Control": says, "ETag": '"1"'})
    url = keeping.signer.url(f"web/{path}", resize="28x")
    if not source_age and "no-store" not in passed:
        passed = f"{passed.partition(',')[0]}, max-age=86400"
    for lines in ((), (), (("If-None-Match", "*"),), ()):
        reply = await get(keeping, url, *lines)
        assert _near(reply.headers["Cache-Control"]) == _near(passed)
    asked = [line for line in keeping.web.log if path in line]
    later = "304" if says == "no-cache" else "200" if "no-store" in says or "private" in says else None
    assert asked[1:] == ([f"{later} /pictures/{path}"] * 3 if later else [])


def _near(header: str) -> str:
    """A header whose ages may be some seconds less."""
    return re.sub(r"[1-9]\d+", lambda age: str(-(-int(age[0]) // 60) * 60), header)


async def test_the_age_of_a_source_goes_down(keeping: Site, source_age: bool) -> None:
    keeping.web.pages["/pictures/aging.png"] = Page(PICTURE, {"Cache-Control": "max-age=2000", "Age": "1000"})
    url = keeping.signer.url("web/aging.png", resize="28x")
    ages = []
    for _ in range(2):
        reply = await get(keeping, url)
        ages.append(int(reply.headers["Cache-Control"].removeprefix("public, max-age=")))
        await asyncio.sleep(1.1)
    assert (1000 >= ages[0] > ages[1] > 900) if source_age else ages == [DAY, DAY]


async def test_the_age_of_a_source_ends_with_the_url(keeping: Site) -> None:
    keeping.web.pages["/pictures/ending.png"] = Page(PICTURE, {"Cache-Control": "max-age=2000"})
    url = keeping.signer.url("web/ending.png", resize="28x", expires=int(time.time()) + 100)
    for _ in range(2):
        reply = await get(keeping, url)
        assert 60 < int(reply.headers["Cache-Control"].removeprefix("public, max-age=")) <= 100


async def test_who_asks_at_the_same_time_shares_what_nobody_may_store(keeping: Site) -> None:
    keeping.web.pages["/pictures/shared.png"] = page = Page(PICTURE, {"Cache-Control": "no-store"})
    url = keeping.signer.url("web/shared.png", resize="29x", version="1")
    replies = await at_once(keeping.client, page, (get(keeping, url) for _ in range(8)))
    assert {(reply.status, reply.headers["Cache-Control"]) for reply in replies} == {(200, "no-store")}
    assert keeping.web.log.count("200 /pictures/shared.png") == 1
    assert not any(replies[0].body in data for _, data in contents(keeping.service.state))
