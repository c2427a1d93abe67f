"""What pictures by URL count in: the address of whoever asks, and the account that they are made for."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from imgsvc_urls import Signer
from tests.http.calls import Reply, assert_failure, call, upload
from tests.http.service_process import Service, running
from tests.http.ways.conftest import signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

FLOOD = 1700
PICTURES, MISSES, REQUESTS = 20, 5, 40
ATTACKER, CDN, PROXY = "127.0.0.2", "127.0.0.3", "127.0.0.4"
DAY = {"rate.period_seconds": 86_400, "rate.pictures_period_seconds": 86_400}


@pytest.fixture(scope="module")
def rated(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that allows little in a day."""
    settings = {
        **DAY,
        "delivery.origins": json.dumps({"photos": f"file://{photos}", "web": f"{web.url}/pictures/"}),
        "fetch.private_allowed": "127.0.0.1",
        "rate.requests": REQUESTS,
        "rate.pictures": PICTURES,
        "rate.misses": MISSES,
        "rate.not_counted": CDN,
        "server.trusted_proxies": PROXY,
    }
    with running(tmp_path_factory.mktemp("rated") / "state", settings) as service:
        yield service


@asynccontextmanager
async def calling_from(
    service: Service, address: str, visitor: str = "", *, key: str = "", connections: int = 8
) -> AsyncIterator[aiohttp.ClientSession]:
    """A client at an address of this machine, which may be that of a proxy of a visitor."""
    connector = aiohttp.TCPConnector(ssl=service.tls, local_addr=(address, 0), limit=connections)
    headers = {"X-Forwarded-For": visitor} if visitor else {}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    url = URL(service.url).with_host("127.0.0.1")  # an address of IPv6 could not be called from there
    async with aiohttp.ClientSession(url, connector=connector, headers=headers) as client:
        yield client


async def get(client: aiohttp.ClientSession, url: str, **options: Any) -> Reply:
    return await call(client, options.pop("method", "GET"), URL(url, encoded=True), **options)


def left(reply: Reply) -> tuple[int, int]:
    return int(reply.headers["X-RateLimit-Limit"]), int(reply.headers["X-RateLimit-Remaining"])


async def test_who_floods_a_picture_takes_it_from_nobody_else(photos: Path, tmp_path: Path) -> None:
    """With the defaults, but for the length of the period: a flood in a minute is as many."""
    origins = {"delivery.origins": json.dumps({"photos": f"file://{photos}"})}
    with running(tmp_path / "state", {**origins, "rate.pictures_period_seconds": 86_400}) as service:
        url = signer_for(service).url("photos/photo.jpg", resize="20x")
        async with calling_from(service, ATTACKER) as attacker:
            replies = [reply for _ in range(FLOOD // 100) for reply in await _many(attacker, url, 100)]
        assert Counter(reply.status for reply in replies) == {200: 1500, 429: FLOOD - 1500}
        async with calling_from(service, "127.0.0.1", key=service.key) as visitor:
            assert (await get(visitor, url)).status == 200
            assert left(await call(visitor, "GET", "/1.0/account")) == (100_000, 99_999)


async def _many(client: aiohttp.ClientSession, url: str, times: int) -> list[Reply]:
    return await asyncio.gather(*(get(client, url) for _ in range(times)))


@pytest.mark.parametrize("what", ["hit", "304", "HEAD", "error"])
async def test_pictures_count_by_the_address_of_the_visitor(what: str, rated: Service) -> None:
    """Those of a proxy by the address that it tells, and those of a network of IPv6 together."""
    url = signer_for(rated).url("photos/photo.jpg" if what != "error" else "photos/none.jpg", resize="21x")
    headers = {"If-None-Match": "*"} if what == "304" else {}
    method = "HEAD" if what == "HEAD" else "GET"
    status = {"304": 304, "error": 404}.get(what, 200)
    number = ["hit", "304", "HEAD", "error"].index(what)
    for visitors in ([f"192.0.2.{number}"], [f"2001:db8:0:{number}::{end}" for end in range(1, 5)]):
        for count in range(PICTURES):
            async with calling_from(rated, PROXY, visitors[count % len(visitors)]) as visitor:
                reply = await get(visitor, url, method=method, headers=headers)
            assert (reply.status, left(reply)) == (status, (PICTURES, PICTURES - 1 - count))
        async with calling_from(rated, PROXY, visitors[0]) as visitor:
            refused = await get(visitor, url, method=method, headers=headers)
        assert (refused.status, left(refused)) == (429, (PICTURES, 0))
        assert int(refused.headers["Retry-After"]) >= 1
    async with calling_from(rated, PROXY, f"198.51.100.{number}") as other:
        assert (await get(other, url, method=method, headers=headers)).status == status


async def test_the_addresses_of_a_cdn_do_not_count(rated: Service) -> None:
    url = signer_for(rated).url("photos/photo.jpg", resize="22x")
    async with calling_from(rated, CDN) as cdn:
        replies = [await get(cdn, url) for _ in range(PICTURES + 3)]
        assert {(reply.status, left(reply)) for reply in replies} == {(200, (PICTURES, PICTURES))}


async def test_pictures_that_are_made_count_for_the_account(rated: Service) -> None:
    """Hits of the account go on when it has no misses left, and so do all pictures of another one."""
    mine, other = signer_of_new_account(rated), signer_of_new_account(rated)
    urls = [mine.url("photos/photo.jpg", resize=f"{30 + number}x") for number in range(MISSES + 1)]
    async with calling_from(rated, CDN) as client:
        replies = [await get(client, url) for url in urls]
        assert [reply.status for reply in replies] == [200] * MISSES + [429]
        refused = assert_failure(replies[-1], 429, "rate_limit_exceeded", "Retry in")
        assert f"Retry in {replies[-1].headers['Retry-After']} seconds." in refused["message"]
        assert left(replies[-1]) == (MISSES, 0)
        assert {(await get(client, url)).status for url in urls[:-1]} == {200}
        assert (await get(client, other.url("photos/photo.jpg", resize="30x"))).status == 200


async def test_a_picture_of_a_source_that_has_changed_is_a_miss(rated: Service, web: WebOrigin) -> None:
    """One of a source that is asked, and has not changed, is none."""
    headers = {"Cache-Control": "max-age=0, must-revalidate", "ETag": '"same"'}
    page = web.pages["/pictures/changing.jpg"] = Page(encoded.jpeg().data, headers)
    url = signer_of_new_account(rated).url("web/changing.jpg", resize="20x")
    async with calling_from(rated, CDN) as client:
        assert {(await get(client, url)).status for _ in range(MISSES + 1)} == {200}
        for count in range(MISSES - 1):
            page.headers = {**headers, "ETag": f'"{count}"'}
            assert (await get(client, url)).status == 200
        page.headers = {**headers, "ETag": '"last"'}
        assert_failure(await get(client, url), 429, "rate_limit_exceeded")


async def test_a_made_up_url_asks_for_no_picture(rated: Service) -> None:
    """It counts as any request without a key."""
    url = signer_for(rated).url("photos/photo.jpg", resize="20x")
    async with calling_from(rated, PROXY, "203.0.113.1") as visitor:
        made_up = await get(visitor, url.replace("resize:20x", "resize:21x"))
        assert (made_up.status, left(made_up)) == (403, (REQUESTS, REQUESTS - 1))
        assert left(await get(visitor, url)) == (PICTURES, PICTURES - 1)


async def test_many_who_wait_for_a_picture_are_one_miss(rated: Service) -> None:
    signer = signer_of_new_account(rated)
    async with calling_from(rated, CDN) as client:
        together = await _many(client, signer.url("photos/photo.jpg", resize="40x", blur=40), 2 * MISSES)
        assert {reply.status for reply in together} == {200}
        more = [signer.url("photos/photo.jpg", resize=f"{41 + number}x") for number in range(MISSES)]
        assert [(await get(client, url)).status for url in more] == [200] * (MISSES - 1) + [429]


async def test_results_take_nothing_from_other_requests_of_an_address(rated: Service) -> None:
    """Without a key they count by address, and those of a CDN not at all."""
    async with calling_from(rated, "127.0.0.5", key=rated.new_key()) as client:
        reply = await upload(client, encoded.png().data)
    path = URL(reply.json["output"]["url"]).path
    async with calling_from(rated, "127.0.0.5") as client:
        counted = [left(await get(client, path))[1] for _ in range(3)]
        assert counted == [REQUESTS - 1, REQUESTS - 2, REQUESTS - 3]
        assert left(await call(client, "GET", "/1.0/openapi.json")) == (REQUESTS, REQUESTS - 1)
    async with calling_from(rated, CDN) as cdn:
        replies = [await get(cdn, path) for _ in range(REQUESTS + 2)]
        assert {(reply.status, left(reply)) for reply in replies} == {(200, (REQUESTS, REQUESTS))}


async def test_probes_are_neither_counted_nor_refused(rated: Service) -> None:
    """Not even when the address or the key of the prober has no request left."""
    async with calling_from(rated, "127.0.0.6", key=rated.new_key()) as keyed:
        for key in ("", keyed.headers["Authorization"]):
            headers = {"Authorization": key} if key else {"Authorization": "Bearer wrong"}
            calls = [await call(keyed, "GET", "/1.0/account", headers=headers) for _ in range(REQUESTS)]
            assert {reply.status for reply in calls} == ({200} if key else {401})
            for path in ("/healthz", "/readyz") * 3:
                probe = await call(keyed, "GET", path, headers=headers)
                assert (probe.status, left(probe)) == (200, (REQUESTS, REQUESTS))
            assert (await call(keyed, "GET", "/1.0/account", headers=headers)).status == 429


def signer_of_new_account(service: Service) -> Signer:
    account = json.loads(service.imgsvc("accounts", "create", "Shop", "--json"))["id"]
    key = json.loads(service.imgsvc("signing-keys", "create", account, "--json"))
    return Signer("", key["id"], key["secret"])
