"""A source is fetched once for all sizes that are made of it at a time, by URLs and by POST."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio

from imgsvc_urls import Signer
from tests.http.calls import Reply, call, fetch
from tests.http.service_process import Service, running
from tests.http.ways.conftest import Site, at_once, signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

SIZES = range(10, 34)
OLD, NEW = encoded.jpeg().data, encoded.png_alpha().data


@pytest.fixture(scope="module")
def service(web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = {
        "delivery.origins": json.dumps({"web": f"{web.url}/"}),
        "fetch.private_allowed": "127.0.0.1",
        "rate.pictures": 10**6,
        "cache.stale_seconds": 0,
        "server.processes": 1,
        "limits.source_bytes": 10**6,
    }
    with running(tmp_path_factory.mktemp("shared") / "state", settings) as service:
        yield service


@pytest.fixture(scope="module")
def signer(service: Service) -> Signer:
    return signer_for(service)


@pytest_asyncio.fixture
async def site(service: Service, signer: Signer, web: WebOrigin) -> AsyncIterator[Site]:
    async with service.client(key="") as client:
        yield Site(service, client, signer, service.state, web)
    web.pages.clear()
    web.log.clear()


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


async def sizes(site: Site, source: str, page: Page) -> list[Reply]:
    """The pictures of all sizes at a time."""
    asked = (site.picture(source, resize=f"{size}x", format="png") for size in SIZES)
    replies = await at_once(site.client, page, asked)
    assert [reply.status for reply in replies] == [200] * len(SIZES), replies[0].body
    assert [reply.picture.width for reply in replies] == list(SIZES)
    return replies


@pytest.mark.parametrize(
    "headers", [{}, {"ETag": '"1"'}, {"Cache-Control": "no-store"}, {"Cache-Control": "private"}]
)
async def test_all_sizes_at_a_time_are_one_fetch(site: Site, headers: Mapping[str, str]) -> None:
    path = f"/{len(str(headers))}.jpg"
    site.web.pages[path] = page = Page(OLD, headers)
    await sizes(site, f"web{path}", page)
    assert site.web.log == [f"200 {path}"]


async def test_sizes_of_what_has_changed_are_one_fetch(site: Site) -> None:
    headers = {"ETag": '"1"', "Cache-Control": "no-cache"}
    site.web.pages["/b.jpg"] = page = Page(OLD, headers)
    before = await sizes(site, "web/b.jpg", page)
    await sizes(site, "web/b.jpg", page)
    assert site.web.log == ["200 /b.jpg", "304 /b.jpg"]
    site.web.pages["/b.jpg"] = page = Page(NEW, {**headers, "ETag": '"2"'})
    after = await sizes(site, "web/b.jpg", page)
    assert site.web.log == ["200 /b.jpg", "304 /b.jpg", "200 /b.jpg"]
    assert all(old.body != new.body for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        ({}, True),
        ({"Cache-Control": "max-age=60"}, True),
        ({"Cache-Control": "s-maxage=60, max-age=0"}, True),
        ({"Cache-Control": "max-age=60", "Age": "60"}, False),
        ({"Cache-Control": "max-age=0"}, False),
        ({"Cache-Control": "no-cache"}, False),
        ({"Cache-Control": "no-store"}, False),
        ({"Cache-Control": "private, max-age=60"}, False),
    ],
)
async def test_a_source_is_kept_for_a_moment_if_its_headers_allow(
    site: Site, headers: Mapping[str, str], kept: bool
) -> None:
    path = f"/{quote(json.dumps(headers), safe='')}.jpg"
    site.web.pages[path] = Page(OLD, headers)
    for size in (10, 11):
        reply = await site.picture(f"{site.web.url}{path}", resize=f"{size}x")
        assert reply.status == 200, reply.body
    assert len(site.web.log) == (1 if kept else 2)


async def test_it_is_kept_for_two_seconds_and_longer_where_headers_allow(site: Site) -> None:
    site.web.pages["/short.jpg"] = Page(OLD)
    site.web.pages["/long.jpg"] = Page(OLD, {"Cache-Control": "max-age=60"})
    for size in (10, 11):
        for name in ("short", "long"):
            await site.picture(f"web/{name}.jpg", resize=f"{size}x")
        await asyncio.sleep(2.1)
    assert sorted(site.web.log) == ["200 /long.jpg", "200 /short.jpg", "200 /short.jpg"]


async def test_the_time_that_it_was_kept_counts_in_its_age(site: Site) -> None:
    """Otherwise the picture of another size would stay fresh for longer than the source allows."""
    site.web.pages["/aging.jpg"] = Page(OLD, {"Cache-Control": "max-age=8"})
    await site.picture("web/aging.jpg", resize="10x")
    ends = time.monotonic() + 8
    await asyncio.sleep(2.5)
    urls = [site.signer.url("web/aging.jpg", resize="11x") for _ in range(2)]
    assert (await site.get(urls[0])).headers["X-Svc-Cache"] == "miss"
    assert site.web.log == ["200 /aging.jpg"]
    await asyncio.sleep(ends + 1 - time.monotonic())  # ages are whole seconds
    assert (await site.get(urls[1])).headers["X-Svc-Cache"] == "miss"


async def test_a_new_version_and_a_purge_ask_anew(site: Site, client: aiohttp.ClientSession) -> None:
    page = Page(OLD, {"Cache-Control": "max-age=60"})
    site.web.pages["/purged.jpg"] = page
    url = f"{site.web.url}/purged.jpg"
    await site.picture(url, resize="10x")
    await site.picture(url, resize="11x", version="2")
    assert len(site.web.log) == 2
    await site.picture(url, resize="12x", version="2")
    assert len(site.web.log) == 2
    page.body = NEW
    purged = await call(client, "DELETE", f"/1.0/cache?url={quote(url, safe='')}")
    assert purged.status == 200, purged.body
    new = await site.picture(url, resize="13x", format="png")
    assert len(site.web.log) == 3
    assert new.picture.mode == "RGBA"


async def test_failures_are_shared_and_not_kept(site: Site) -> None:
    site.web.pages["/failing.jpg"] = page = Page(b"", status=500)
    asked = (site.picture("web/failing.jpg", resize=f"{size}x") for size in SIZES)
    assert {reply.status for reply in await at_once(site.client, page, asked)} == {424}
    assert site.web.log == ["500 /failing.jpg"]
    site.web.pages["/failing.jpg"] = page = Page(OLD)
    await sizes(site, "web/failing.jpg", page)


async def test_posts_at_a_time_share_a_fetch_and_later_ones_if_headers_allow(
    site: Site, client: aiohttp.ClientSession
) -> None:
    site.web.pages["/post.jpg"] = page = Page(OLD, seconds=0.5)
    url = f"{site.web.url}/post.jpg"

    async def post(size: int, **more: object) -> Reply:
        reply = await fetch(client, url, resize={"width": size}, **more)
        assert (reply.status, reply.json["output"]["width"]) == (200, size), reply.body
        return reply

    replies = await at_once(client, page, map(post, SIZES))
    assert all(reply.json["timing"]["fetch"] > 400 for reply in replies[:1])
    assert len(site.web.log) == 1
    await post(10)
    assert len(site.web.log) == 2, "its headers say nothing"
    site.web.pages["/post.jpg"] = Page(OLD, {"Cache-Control": "max-age=60"})
    for size in (10, 11):
        await post(size)
    assert len(site.web.log) == 3
    await post(10, headers={"X-Other": "1"})
    assert len(site.web.log) == 4, "other headers may bring another source"
    refused = await fetch(client, url, limits={"source_bytes": len(OLD) - 1})
    assert refused.json["error"] == "source_too_large", refused.body
