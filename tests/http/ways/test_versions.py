"""A version that is new to the service asks the source anew, past every copy of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from imgsvc_urls import Signer
from tests.http.service_process import Service, running
from tests.http.ways.conftest import Site, new_account
from tests.http.ways.test_rates import signer_of_new_account
from tests.http.ways.web_origin import Page, WebOrigin, web_origin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

STATE = "X-Svc-Cache"
LONG = {
    "Cache-Control": "max-age=3600",
    "ETag": '"the same"',
    "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
}
OLD, NEW = encoded.jpeg().data, encoded.png_alpha().data
MISSES = 30


@pytest.fixture(scope="module")
def service(web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that makes a few pictures for each account in a day."""
    folder = tmp_path_factory.mktemp("versions")
    (folder / "photos").mkdir()
    account = new_account(folder / "state")
    settings = {
        "delivery.origins": json.dumps({"web": f"{web.url}/", "photos": f"file://{folder}/photos"}),
        "delivery.unsigned": account,
        "delivery.dialects": json.dumps({"imgproxy": {"sources": [f"{web.url}/"]}}),
        "fetch.private_allowed": "127.0.0.1",
        "rate.misses": MISSES,
        "rate.period_seconds": 86_400,
    }
    with running(folder / "state", settings) as service:
        yield service


@pytest.fixture(scope="module")
def signer(service: Service) -> Signer:
    return signer_of_new_account(service)


@pytest_asyncio.fixture
async def site(service: Service, signer: Signer, web: WebOrigin) -> AsyncIterator[Site]:
    async with service.client(key="") as client:
        yield Site(service, client, signer, service.state.parent / "photos", web)
    web.pages.clear()
    web.log.clear()


def _url(site: Site, way: str, version: str | None) -> str:
    """The URL of a picture in one of the ways to name its source and its version."""
    match way:
        case "imgproxy" | "imgproxy's short name":
            name = "cachebuster" if way == "imgproxy" else "cb"
            options = f"/{name}:{version}" if version else ""
            return f"/imgproxy/unsafe{options}/rs:fit:30:30/plain/{site.web.url}/{way[-4:]}.img@png"
        case "unsigned":
            return f"/1.0/image/unsigned{f'/version:{version}' if version else ''}/web/unsigned.img"
        case _:
            source = {"url": f"{site.web.url}/url.img", "origin": "web/origin.img", "file": "photos/a.img"}[
                way
            ]
            return site.signer.url(source, resize="30x30", format="png", version=version)


def _put(site: Site, data: bytes) -> None:
    """Change the source of all URLs."""
    for path in ("url", "origin", "roxy", "name", "unsigned"):
        site.web.pages[f"/{path}.img"] = Page(data, LONG)
    (site.photos / "a.img").write_bytes(data)


WAYS = ("url", "origin", "file", "unsigned", "imgproxy", "imgproxy's short name")


@pytest.mark.parametrize("way", WAYS)
async def test_a_new_version_has_the_new_picture(site: Site, way: str) -> None:
    """Even if its source is fresh for an hour, has the same validators, or was looked at just now."""
    _put(site, OLD)
    old = [await site.get(_url(site, way, version)) for version in (None, "1")]
    await site.get(_url(site, way, None))  # looks at a file again
    _put(site, NEW)
    new = [await site.get(_url(site, way, version)) for version in ("2", "3")]
    assert [reply.headers[STATE] for reply in (*old, *new)] == ["miss"] * 4
    assert old[0].body == old[1].body != new[0].body == new[1].body
    await asyncio.sleep(1.1)  # what was found out of a file counts for a second
    again = await site.get(_url(site, way, "2"))
    assert (again.headers[STATE], again.body) == ("hit", new[0].body)
    known = await site.get(_url(site, way, "4"), If_None_Match=old[1].headers["ETag"])
    assert (known.status, known.body) == (200, new[0].body)
    if way != "file":
        assert (await site.get(_url(site, way, "1"))).body == old[0].body, "its copy is still fresh"


async def test_caches_on_the_way_to_the_source_are_told(site: Site) -> None:
    site.web.pages["/told.img"] = Page(OLD, LONG)
    await site.picture(f"{site.web.url}/told.img", resize="30x")
    assert "Cache-Control" not in site.web.asked["/told.img"]
    await site.picture(f"{site.web.url}/told.img", resize="30x", version="1")
    assert site.web.asked["/told.img"]["Cache-Control"] == "no-cache"


async def test_caches_of_other_hosts_are_told_after_a_redirect(site: Site) -> None:
    with web_origin() as away:
        away.pages["/told.img"] = Page(OLD, LONG)
        site.web.pages["/moved.img"] = Page(b"", {"Location": f"{away.url}/told.img"}, 302)
        url = site.web.url.replace("http://", "http://user:word@")
        for version, told in ((None, None), ("1", "no-cache")):
            await site.picture(f"{url}/moved.img", resize="30x", version=version)
            assert away.asked["/told.img"]["Cache-Control"] == told
            assert "Authorization" in site.web.asked["/moved.img"]
            assert "Authorization" not in away.asked["/told.img"]


async def test_nobody_joins_a_fetch_for_another_version(site: Site) -> None:
    released = threading.Event()
    site.web.pages["/slow.img"] = Page(OLD, LONG, released=released)
    url = site.signer.url("web/slow.img", resize="30x30", format="png", version="1")
    slow = asyncio.create_task(site.get(url))
    while "200 /slow.img" not in site.web.log:
        await asyncio.sleep(0.01)
    site.web.pages["/slow.img"] = Page(NEW, LONG)
    new = await site.picture("web/slow.img", resize="30x30", format="png", version="2")
    assert not slow.done()
    released.set()
    assert new.body != (await slow).body


async def test_strangers_ask_sources_no_more_often_than_they_may_make_pictures(site: Site) -> None:
    """They may write any version into URLs that need no signature."""
    site.web.pages["/unsigned.img"] = Page(OLD, LONG)
    urls = [_url(site, "unsigned", f"guess-{number}") for number in range(MISSES + 3)]
    statuses = [(await site.get(url, If_None_Match='"guess"')).status for url in urls]
    assert statuses[-3:] == [429] * 3
    assert site.web.log.count("200 /unsigned.img") == statuses.count(200) <= MISSES
    assert (await site.get(urls[0])).status == 200, "which is a hit"
