"""Pictures of layers by URL: where a setting allows them, fetched and cached as sources are."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
import pyvips

from tests.http.calls import Reply, assert_failure, call, upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, running
from tests.http.ways.conftest import Site, signer_for
from tests.http.ways.web_origin import Page, WebOrigin
from tests.support import encoded

pytestmark = pytest.mark.asyncio

PHOTO, MARK, OTHER = encoded.jpeg().data, encoded.png_alpha().data, encoded.png().data
LARGE = pyvips.Image.black(1001, 1000).write_to_buffer(".png")
BOMB = LARGE[:16] + struct.pack(">II", 60_000, 60_000) + LARGE[24:29]
BOMB += struct.pack(">I", zlib.crc32(BOMB[12:29])) + LARGE[33:]
PRIVATE = "http://10.1.2.3/marks/"


@pytest.fixture(scope="module")
def laying(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose layers may name pictures of a web server below ``/marks/``."""
    settings = {
        "delivery.origins": json.dumps({"photos": f"file://{photos}", "web": f"{web.url}/pictures/"}),
        "fetch.private_allowed": "127.0.0.1",
        "fetch.layers": f"{web.url}/marks/,{PRIVATE}",
        "limits.source_bytes": 100_000,
        "limits.source_pixels": 1_000_000,
        "cache.min_seconds": 0,
        "cache.stale_seconds": 0,
        "rate.pictures": 10**6,
    }
    with running(tmp_path_factory.mktemp("laying") / "state", settings) as service:
        yield service


@pytest_asyncio.fixture
async def lay(laying: Service, photos: Path, web: WebOrigin) -> AsyncIterator[Site]:
    async with laying.client(key="") as client:
        yield Site(laying, client, signer_for(laying), photos, web)
        web.pages.clear()
        web.log.clear()


def new() -> str:
    """A name under which nothing was fetched before."""
    return f"{uuid4().hex}.png"


def named(url: str, **more: Any) -> dict[str, Any]:
    return {"layers": [{"picture": {"source": url}, "width": "50%", **more}], "output": {"format": "png"}}


async def test_a_picture_by_url_lies_there_as_an_uploaded_one_does(lay: Site) -> None:
    lay.web.pages["/marks/one.png"] = Page(MARK)
    lay.web.pages["/pictures/photo.jpg"] = Page(PHOTO)
    request = named(f"{lay.web.url}/marks/one.png")
    binary = {"response": {"mode": "binary"}}
    async with lay.service.client() as client:
        made = await upload(client, MARK, path="/1.0/watermarks")
        picture = {"id": made.json["watermark"]["id"]}
        uploaded = {**request, "layers": [{**request["layers"][0], "picture": picture}]}
        expected = await upload(client, PHOTO, {**uploaded, **binary})
        assert expected.status == 200, expected.metadata
        sent = await upload(client, PHOTO, {**request, **binary})
        body = {"url": f"{lay.web.url}/pictures/photo.jpg", **request, **binary}
        fetched = await call(client, "POST", "/1.0/fetch", json=body)
        await call(client, "PUT", "/1.0/presets/marked", json=request)
        preset = await upload(client, PHOTO, {"preset": "marked", **binary})
        plain = await upload(client, PHOTO, {"output": request["output"], **binary})
    by_url = [
        await lay.get(lay.signer.url(source, request)) for source in ("photos/photo.jpg", "web/photo.jpg")
    ]
    assert sent.metadata["timing"]["fetch"] > 0
    for reply in (sent, fetched, preset, *by_url):
        assert reply.status == 200, (reply.body, reply.metadata)
        assert reply.body == expected.body
    assert plain.body != expected.body


async def test_a_webhook_tells_of_a_picture_by_url(lay: Site) -> None:
    lay.web.pages["/marks/two.png"] = Page(MARK)
    request = named(f"{lay.web.url}/marks/two.png")
    lost = named(f"{lay.web.url}/marks/lost.png")
    async with receiving() as receiver, lay.service.client() as client:
        for asked in (request, lost):
            accepted = await upload(client, PHOTO, {**asked, "webhook": {"url": receiver.url}})
            assert accepted.status == 202, accepted.body
        told = [json.loads(post.body) for post in await receiver.arrived(2)]
    made, failed = sorted(told, key=lambda answer: not answer["success"])
    assert made["success"]
    assert failed["error"] == "source_unreachable"
    assert [error["path"] for error in failed["errors"]] == ["layers[0].picture.source"]


@pytest.mark.parametrize("source", ["web/dated.jpg", "photos/photo.jpg"])
async def test_a_changed_picture_of_a_layer_is_another_picture(source: str, lay: Site) -> None:
    page = Page(MARK, {"ETag": '"1"', "Cache-Control": "max-age=0"})
    lay.web.pages["/pictures/dated.jpg"] = Page(PHOTO, {"ETag": '"p"', "Cache-Control": "max-age=3600"})
    lay.web.pages["/marks/b.png"] = page
    url = lay.signer.url(source, named(f"{lay.web.url}/marks/b.png"))
    first = await lay.get(url)
    assert (first.status, first.headers["X-Svc-Cache"]) == (200, "miss"), first.body
    again = await lay.get(url)
    assert again.headers["X-Svc-Cache"] == "revalidated"
    assert again.body == first.body
    assert "304 /marks/b.png" in lay.web.log
    known = await lay.get(url, If_None_Match=first.headers["ETag"])
    assert known.status == 304
    assert (await lay.get(url, If_Match=first.headers["ETag"])).status == 200
    # The date of the source tells nothing about its layers.
    assert "Last-Modified" not in first.headers
    assert (await lay.get(url, If_Modified_Since="Fri, 01 Jan 2038 00:00:00 GMT")).status == 200
    lay.web.pages["/marks/b.png"] = Page(OTHER, {"ETag": '"2"', "Cache-Control": "max-age=0"})
    changed = await lay.get(url, If_None_Match=first.headers["ETag"])
    assert changed.status == 200
    assert changed.headers["ETag"] != first.headers["ETag"]
    assert changed.body != first.body


async def test_a_picture_stays_fresh_as_long_as_its_layers(lay: Site) -> None:
    lay.web.pages["/marks/c.png"] = Page(MARK, {"ETag": '"1"', "Cache-Control": "max-age=3600"})
    url = lay.signer.url("photos/photo.jpg", named(f"{lay.web.url}/marks/c.png"))
    states = [(await lay.get(url)).headers["X-Svc-Cache"] for _ in range(3)]
    assert states == ["miss", "hit", "hit"]
    assert lay.web.log.count("200 /marks/c.png") == 1


@pytest.mark.parametrize(
    ("source", "way"),
    [
        *(("FILE", way) for way in ("upload", "webhook", "url", "info", "preview")),
        ("file://FILE", "upload"),
        ("WEB/other/a.png", "url"),
        ("WEB/marks/../other/a.png", "upload"),
        ("WEB/marks/%252e%252e/other/a.png", "upload"),
        ("https://a.example/marks/a.png", "upload"),
        ("github:octocat", "upload"),
    ],
)
async def test_other_beginnings_and_paths_are_refused_before_anything_is_fetched(
    source: str, way: str, lay: Site, tmp_path: Path
) -> None:
    file = tmp_path / "secret.png"
    file.write_bytes(MARK)
    lay.web.pages["/other/a.png"] = Page(MARK)
    request = named(source.replace("FILE", str(file)).replace("WEB", lay.web.url))
    used = await lay.used()
    reply = await _asked(lay, way, request)
    assert_failure(reply, 422, "invalid_parameter")
    assert [error["path"] for error in reply.json["errors"]] == ["layers[0].picture.source"]
    assert f"{lay.web.url}/marks/" in reply.json["errors"][0]["message"]
    assert not lay.web.log
    assert await lay.used() == used


@pytest.mark.parametrize(
    ("place", "page", "slug", "way"),
    [
        *(
            (PRIVATE + "a.png", None, "source_unreachable", way)
            for way in ("upload", "url", "info", "preview")
        ),
        ("WEB/marks/NEW", None, "source_unreachable", "upload"),
        ("WEB/marks/NEW", None, "source_unreachable", "url"),
        ("WEB/marks/NEW", Page(b"<html>"), "unsupported_format", "upload"),
        ("WEB/marks/NEW", Page(MARK[: len(MARK) // 2]), "corrupt_image", "url"),
        ("WEB/marks/NEW", Page(b"x" * 100_001), "source_too_large", "upload"),
        ("WEB/marks/NEW", Page(LARGE), "image_too_large", "upload"),
        ("WEB/marks/NEW", Page(LARGE), "image_too_large", "preview"),
        ("WEB/marks/NEW", Page(BOMB), "image_too_large", "url"),
    ],
)
async def test_what_cannot_be_used_names_the_layer(
    place: str, page: Page | None, slug: str, way: str, lay: Site
) -> None:
    name = new()
    if page is not None:
        lay.web.pages[f"/marks/{name}"] = page
    layer = named(place.replace("WEB", lay.web.url).replace("NEW", name))["layers"][0]
    shape = {"shape": {"kind": "rectangle", "color": "FF3300"}}
    used = await lay.used()
    reply = await _asked(lay, way, {"layers": [shape, layer]})
    assert reply.status in (413, 422, 424), reply.body
    assert reply.json["error"] == slug
    assert [error["path"] for error in reply.json["errors"]] == ["layers[1].picture.source"]
    assert await lay.used() == used


async def test_the_limit_of_sources_holds_for_all(lay: Site) -> None:
    async with lay.service.client() as client:
        for length, allowed in ((100_000, True), (100_001, False)):
            picture, file = MARK.ljust(length, b"\0"), lay.photos / f"{length}.png"
            mark = await upload(client, picture, path="/1.0/watermarks")
            assert mark.status == (201 if allowed else 413)
            assert (await upload(client, picture)).status == (200 if allowed else 413)
            lay.web.pages[f"/pictures/{length}.png"] = Page(picture)
            file.write_bytes(picture)
            for origin in ("web", "photos"):
                reply = await lay.get(lay.signer.url(f"{origin}/{length}.png"))
                assert reply.status == (200 if allowed else 424)
            file.unlink()


async def test_pictures_of_all_layers_share_a_limit(lay: Site) -> None:
    for more in (0, 1):
        names = [new(), new()]
        lay.web.pages |= {f"/marks/{name}": Page(MARK.ljust(50_000 + more, b"\0")) for name in names}
        layers = [named(f"{lay.web.url}/marks/{name}")["layers"][0] for name in names]
        reply = await _asked(lay, "upload", {"layers": layers})
        assert (reply.status == 200) is (more == 0)
    assert_failure(reply, 413, "source_too_large")
    assert [error["path"] for error in reply.json["errors"]] == ["layers[1].picture.source"]


async def test_a_layer_that_is_named_twice_is_fetched_once(lay: Site) -> None:
    name = new()
    lay.web.pages[f"/marks/{name}"] = Page(MARK, {"Cache-Control": "max-age=60"})
    layer = named(f"{lay.web.url}/marks/{name}")["layers"][0]
    replies = await asyncio.gather(*(_asked(lay, "upload", {"layers": [layer, layer]}) for _ in range(3)))
    assert [reply.status for reply in replies] == [200] * 3
    assert lay.web.log == [f"200 /marks/{name}"]


async def _asked(site: Site, way: str, request: dict[str, Any]) -> Reply:
    url = site.signer.url("photos/photo.jpg", request)
    if way == "url":
        return await site.get(url)
    if way == "info":
        return await site.get(url.replace("/1.0/image/", "/1.0/info/", 1))
    async with site.service.client() as client:
        if way == "preview":
            kept = await upload(client, PHOTO, path="/playground/sources")
            path = f"/playground/previews/{kept.json['source']['id']}"
            return await call(client, "POST", path, json={"request": request})
        more = {"webhook": {"url": "https://hooks.example/a"}} if way == "webhook" else {}
        return await upload(client, PHOTO, {**request, **more})
