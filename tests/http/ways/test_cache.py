"""The cache over HTTP: what it answers, what counts, purges, and kills of the service."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from imgsvc_urls import Signer
from tests.http.calls import call
from tests.http.service_process import Service, await_start, running, start
from tests.http.ways.conftest import Site, signer_for
from tests.http.ways.web_origin import Page, WebOrigin, web_origin
from tests.support import encoded
from tests.support.servers import free_port

pytestmark = pytest.mark.asyncio

STATE = "X-Svc-Cache"
ETAG = {"ETag": '"1"', "Cache-Control": "no-cache"}
NEVER_STALE = {"fetch.private_allowed": "127.0.0.1", "cache.stale_seconds": 0}


@pytest.fixture(scope="module")
def origin() -> Iterator[WebOrigin]:
    """A web server of its own, which can be told to fail."""
    with web_origin() as made:
        yield made


@pytest.fixture(scope="module")
def metrics_port() -> Iterator[int]:
    with free_port() as port:
        yield port


@pytest.fixture(scope="module")
def service(
    origin: WebOrigin, metrics_port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service that asks the source before it answers what is not fresh."""
    photos = tmp_path_factory.mktemp("photos")
    origins = {"web": f"{origin.url}/", "photos": f"file://{photos}"}
    settings = {
        **NEVER_STALE,
        "delivery.origins": json.dumps(origins),
        "rate.pictures": 10**6,
        "monitoring.metrics_port": metrics_port,
        "social.github_url": f"{origin.url}/{{user}}.png",
    }
    with running(tmp_path_factory.mktemp("cache") / "state", settings) as service:
        yield service


@pytest.fixture(scope="module")
def signer(service: Service) -> Signer:
    return signer_for(service)


@pytest_asyncio.fixture
async def site(
    service: Service, signer: Signer, origin: WebOrigin, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Site]:
    async with service.client(key="") as client:
        yield Site(service, client, signer, Path(), origin)
    origin.pages.clear()
    origin.log.clear()


async def test_what_is_made_counts_and_what_the_cache_has_does_not(site: Site) -> None:
    site.web.pages["/a.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})
    before = await site.used()
    replies = await asyncio.gather(*(site.picture("web/a.jpg", resize="10x") for _ in range(40)))
    assert Counter(reply.headers[STATE] for reply in replies) == {"miss": 1, "hit": 39}
    assert len({reply.body for reply in replies}) == 1
    assert site.web.log == ["200 /a.jpg"]
    assert await site.used() == before + 1
    assert (await site.picture("web/a.jpg", resize="11x")).headers[STATE] == "miss"


async def test_a_source_that_has_not_changed_is_not_made_again(site: Site) -> None:
    site.web.pages["/b.jpg"] = Page(encoded.jpeg().data, ETAG)
    first = await site.picture("web/b.jpg", resize="10x")
    before = await site.used()
    again = await site.picture("web/b.jpg", resize="10x")
    assert (again.headers[STATE], again.body) == ("revalidated", first.body)
    assert again.headers["ETag"] == first.headers["ETag"]
    assert await site.used() == before
    site.web.pages["/b.jpg"] = Page(encoded.png().data, {**ETAG, "ETag": '"2"'})
    changed = await site.picture("web/b.jpg", resize="10x")
    assert changed.headers[STATE] == "miss"
    assert changed.headers["ETag"] != first.headers["ETag"]
    assert changed.body != first.body
    assert site.web.log == ["200 /b.jpg", "304 /b.jpg", "200 /b.jpg"]


async def test_a_known_picture_is_304(site: Site) -> None:
    site.web.pages["/k.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})
    etag = (await site.picture("web/k.jpg", resize="10x")).headers["ETag"]
    known = await site.picture("web/k.jpg", resize="10x", headers={"If_None_Match": etag})
    assert (known.status, known.body, known.headers["ETag"]) == (304, b"", etag)
    assert site.web.log == ["200 /k.jpg"]


async def test_the_picture_of_an_origin_that_is_down_is_answered_stale(site: Site) -> None:
    site.web.pages["/c.jpg"] = Page(encoded.jpeg().data, {"ETag": '"1"', "Cache-Control": "max-age=0"})
    first = await site.picture("web/c.jpg", resize="10x")
    site.web.pages["/c.jpg"] = Page(b"", status=503)
    for _ in range(3):
        stale = await site.picture("web/c.jpg", resize="10x")
        assert (stale.status, stale.headers[STATE], stale.body) == (200, "stale", first.body)
    assert len(site.web.log) == 2  # it is left alone for a while


async def test_a_source_that_is_gone_is_not_answered_stale(site: Site) -> None:
    site.web.pages["/d.jpg"] = Page(encoded.jpeg().data, {"ETag": '"1"', "Cache-Control": "max-age=0"})
    await site.picture("web/d.jpg", resize="10x")
    del site.web.pages["/d.jpg"]
    assert (await site.picture("web/d.jpg", resize="10x")).status == 404


@pytest.mark.parametrize("directive", ["no-store", "private, max-age=60"])
async def test_what_must_not_be_stored_is_made_each_time(site: Site, directive: str) -> None:
    site.web.pages["/e.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": directive})
    states = [(await site.picture("web/e.jpg", resize="10x")).headers[STATE] for _ in range(3)]
    assert states == ["miss"] * 3


async def test_social_profile_pictures_are_never_cached(site: Site) -> None:
    site.web.pages["/someone.png"] = Page(encoded.png().data, {"Cache-Control": "max-age=60"})
    replies = [await site.picture("github:someone", resize="10x") for _ in range(2)]
    assert [(reply.status, reply.headers[STATE]) for reply in replies] == [(200, "miss")] * 2
    assert replies[0].headers["Cache-Control"] == "no-store"
    assert site.web.log == ["200 /someone.png"] * 2


async def test_a_source_is_purged_for_its_account_alone(site: Site) -> None:
    for name in ("f.jpg", "g.jpg"):
        site.web.pages[f"/{name}"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})
    full = f"{site.web.url}/f.jpg"
    asked = [("web/f.jpg", "10x"), ("web/f.jpg", "11x"), (full, "10x"), ("web/g.jpg", "10x")]
    for source, resize in asked:
        await site.picture(source, resize=resize)
    path = "/1.0/cache?url="
    async with site.service.client(key=site.service.new_key()) as other:
        assert (await call(other, "DELETE", path + "web/f.jpg")).json["purged"] == 0
    async with site.service.client() as own:
        assert (await call(own, "DELETE", path + "web/f.jpg")).json["purged"] == 2
        assert [(await site.picture(name, resize=size)).headers[STATE] for name, size in asked] == [
            "miss", "miss", "hit", "hit",
        ]  # fmt: skip
        assert (await call(own, "DELETE", path + quote(full, safe=""))).json["purged"] == 1
        assert (await site.picture(full, resize="10x")).headers[STATE] == "miss"


async def test_the_command_purges_a_running_service(site: Site) -> None:
    site.web.pages["/h.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})
    await site.picture("web/h.jpg", resize="10x")
    assert (await site.picture("web/h.jpg", resize="10x")).headers[STATE] == "hit"
    assert json.loads(await asyncio.to_thread(site.service.imgsvc, "cache", "stats", "--json"))["entries"] > 0
    await asyncio.to_thread(site.service.imgsvc, "cache", "purge", "--all")
    assert (await site.picture("web/h.jpg", resize="10x")).headers[STATE] == "miss"


async def test_metrics_tell_what_the_cache_does(site: Site, metrics_port: int) -> None:
    site.web.pages["/m.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=60"})

    async def values() -> dict[tuple[str, ...], float]:
        url = f"http://127.0.0.1:{metrics_port}/metrics"
        async with aiohttp.ClientSession() as client, client.get(url) as reply:
            families = list(text_string_to_metric_families(await reply.text()))
        return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}

    before = await values()
    for _ in range(3):
        await site.picture("web/m.jpg", resize="10x")
    after = await values()
    for state, number in (("miss", 1), ("hit", 2), ("stale", 0)):
        name = ("imgsvc_cache_answers_total", state)
        assert after[name] - before[name] == number
    assert after["imgsvc_cache_memory_entries",] == before["imgsvc_cache_memory_entries",] + 1
    assert after["imgsvc_cache_memory_bytes",] > before["imgsvc_cache_memory_bytes",]


@pytest.mark.slow
async def test_kills_leave_right_pictures(origin: WebOrigin, tmp_path: Path) -> None:
    """After each kill, whatever the folder has is a hit with the right picture, and the rest is made."""
    settings = {**NEVER_STALE, "delivery.origins": json.dumps({"web": f"{origin.url}/"})}
    origin.pages["/a.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=600"})
    bodies: dict[int, bytes] = {}
    key, signer, hits = "", None, 0
    for round_ in range(4):
        process = start(tmp_path / "state", settings)
        service = await asyncio.to_thread(await_start, process, tmp_path / "state", key)
        key = service.key
        signer = signer or signer_for(service)
        async with service.client(key="") as client:
            site = Site(service, client, signer, Path(), origin)

            async def get(width: int, site: Site = site) -> str:
                reply = await site.picture("web/a.jpg", resize=f"{width}x")
                assert reply.status == 200
                assert bodies.setdefault(width, reply.body) == reply.body
                return reply.headers[STATE]

            states = await asyncio.gather(*(get(width) for width in range(8, 8 + 6 * round_)))
            hits += states.count("hit")
            pending = [asyncio.create_task(get(width)) for width in range(8, 32)]
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            while not any((tmp_path / "state" / "cache").glob("??/*")):
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGKILL)
            await asyncio.gather(*pending, return_exceptions=True)
        await asyncio.to_thread(process.communicate)
    assert hits > 0
