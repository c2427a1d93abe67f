"""GET /1.0/image/...: the picture, its headers, conditions, ranges, and what a browser can show."""

from __future__ import annotations

import hashlib
import os
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

from imgsvc_http.fetching.folder_origin import Identity
from imgsvc_urls import Signer
from tests.http.calls import Reply
from tests.http.ways.conftest import Site
from tests.http.ways.test_negotiation import CHROME
from tests.http.ways.test_rates import signer_of_new_account
from tests.http.ways.web_origin import Page
from tests.support import encoded

pytestmark = pytest.mark.asyncio


async def test_a_signed_url_is_answered_with_the_picture(site: Site) -> None:
    reply = await site.picture("photos/photo.jpg", resize="40x", format="webp")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "image/webp")
    assert (reply.picture.format, reply.picture.size) == ("WEBP", (40, 27))
    assert int(reply.headers["Content-Length"]) == len(reply.body)
    assert reply.headers["Content-Disposition"] == 'inline; filename="photo.webp"'
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["Access-Control-Allow-Origin"] == reply.headers["Timing-Allow-Origin"] == "*"
    assert reply.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert {"ETag", "Server-Timing"} <= set(reply.headers["Access-Control-Expose-Headers"].split(", "))
    assert reply.headers["Accept-Ranges"] == "bytes"
    assert reply.headers["Cache-Control"] == "public, max-age=86400"
    assert {"fetch", "decode", "process", "encode"} <= {
        item.partition(";")[0].strip() for item in reply.headers["Server-Timing"].split(",")
    }
    assert "Vary" not in reply.headers
    changed = os.stat(site.photos / "photo.jpg").st_mtime
    assert parsedate_to_datetime(reply.headers["Last-Modified"]).timestamp() == int(changed)


@pytest.mark.parametrize("source", ["photos/deep/ü %.png", "archive/photo.jpg", "web/a.png", "plain", "b64"])
async def test_sources_of_every_kind(site: Site, source: str) -> None:
    site.web.pages["/pictures/a.png"] = Page(encoded.png().data)
    site.web.pages["/b%20c.png?x=1"] = Page(encoded.png().data)
    signer = Signer("", site.signer.key_id, site.signer.secret, in_base64=source == "b64")
    place = f"{site.web.url}/b%20c.png?x=1" if source in ("plain", "b64") else source
    reply = await site.get(signer.url(place, resize="30x", format="png", version=source))
    assert reply.status == 200, reply.body
    assert reply.picture.size[0] == 30


async def test_head_answers_like_get_without_a_body(site: Site) -> None:
    got = await site.picture("photos/photo.jpg", resize="33x")
    head = await site.get(site.signer.url("photos/photo.jpg", resize="33x"), method="HEAD")
    assert (head.status, head.body) == (200, b"")
    for name in ("Content-Type", "Content-Length", "ETag", "Cache-Control", "Last-Modified"):
        assert head.headers[name] == got.headers[name]


async def test_a_known_etag_is_answered_304_before_anything_is_read(site: Site) -> None:
    first = await site.picture("photos/photo.jpg", resize="34x")
    used = await site.used()
    again = await site.picture(
        "photos/photo.jpg", resize="34x", headers={"If_None_Match": first.headers["ETag"]}
    )
    assert (again.status, again.body) == (304, b"")
    assert "Server-Timing" not in again.headers
    for name in ("ETag", "Cache-Control"):
        assert again.headers[name] == first.headers[name]
    assert await site.used() == used
    other = await site.picture("photos/photo.jpg", resize="34x", headers={"If_None_Match": '"other"'})
    assert (other.status, other.body) == (200, first.body)


async def test_an_object_that_is_known_is_not_read_even_if_the_cache_has_nothing(site: Site) -> None:
    first = await site.picture("archive/photo.jpg", resize="35x")
    url = signer_of_new_account(site.service).url("archive/photo.jpg", resize="35x")
    again = await site.get(url, If_None_Match=f"W/{first.headers['ETag']}")
    assert (again.status, again.body) == (304, b"")


async def test_etags_differ_by_request_source_and_format(site: Site) -> None:
    (site.photos / "changing.png").write_bytes(encoded.png().data)
    urls = [
        site.signer.url("photos/changing.png", resize="20x", format="auto"),
        site.signer.url("photos/changing.png", resize="21x", format="auto"),
        site.signer.url("photos/photo.jpg", resize="20x", format="auto"),
    ]
    tags = [(await site.get(url)).headers["ETag"] for url in urls]
    tags.append((await site.get(urls[0], Accept=CHROME)).headers["ETag"])
    os.utime(site.photos / "changing.png", (1, 1))
    deadline = time.monotonic() + 60  # facts of files are cached for a second
    while (await site.get(urls[0])).headers["ETag"] == tags[0]:
        assert time.monotonic() < deadline
    tags.append((await site.get(urls[0])).headers["ETag"])
    assert len(set(tags)) == 5
    assert all(tag.startswith('"') for tag in tags)


async def test_a_changed_file_gives_its_new_picture(site: Site) -> None:
    file = site.photos / "replaced.png"
    file.write_bytes(encoded.png().data)
    url = site.signer.url("photos/replaced.png", format="png")
    first = await site.get(url)
    file.write_bytes(encoded.png_alpha().data)
    os.utime(file, (2, 2))
    deadline = time.monotonic() + 60
    while (await site.get(url)).body == first.body:
        assert time.monotonic() < deadline
    file.unlink()
    while (reply := await site.get(url)).status == 200:
        assert time.monotonic() < deadline
    assert reply.status == 404


async def test_ranges(site: Site) -> None:
    whole = await site.picture("photos/photo.jpg", resize="36x")
    size, etag = len(whole.body), whole.headers["ETag"]

    async def part(text: str, **headers: str) -> Reply:
        return await site.picture("photos/photo.jpg", resize="36x", headers={"Range": text, **headers})

    for text, (start, end) in {
        "bytes=0-9": (0, 10),
        "bytes=10-": (10, size),
        "bytes=-5": (size - 5, size),
        "bytes=5-999999": (5, size),
    }.items():
        reply = await part(text)
        assert (reply.status, reply.body) == (206, whole.body[start:end])
        assert reply.headers["Content-Range"] == f"bytes {start}-{end - 1}/{size}"
        assert reply.headers["ETag"] == etag
    assert (await part("bytes=0-9", If_Range='"older"')).body == whole.body
    outside = await part(f"bytes={size}-")
    assert (outside.status, outside.headers["Content-Range"]) == (416, f"bytes */{size}")
    assert outside.json["error"] == "range_not_satisfiable"


@pytest.mark.parametrize(
    ("source", "accept", "format"),
    [
        ("photos/photo.jpg", CHROME, "image/avif"),
        ("photos/photo.jpg", "image/webp,*/*", "image/webp"),
        ("photos/photo.jpg", "*/*", "image/jpeg"),
        ("photos/deep/ü %.png", "*/*", "image/png"),
        ("photos/deep/ü %.png", "image/webp,*/*", "image/webp"),
        ("photos/moving.gif", CHROME, "image/avif"),
        ("photos/moving.gif", "*/*", "image/gif"),
    ],
)
async def test_the_best_format_that_a_browser_shows(
    site: Site, source: str, accept: str, format: str
) -> None:
    reply = await site.picture(source, resize="24x", format="auto", headers={"Accept": accept})
    assert (reply.status, reply.headers["Content-Type"], reply.headers["Vary"]) == (200, format, "Accept")
    if "moving" in source:
        assert getattr(reply.picture, "n_frames", 1) > 1


async def test_cache_control_ends_with_the_url(site: Site) -> None:
    soon = int(time.time()) + 1000
    reply = await site.picture("photos/photo.jpg", resize="37x", expires=soon)
    assert 900 < int(reply.headers["Cache-Control"].removeprefix("public, max-age=")) <= 1000
    late = await site.picture("photos/photo.jpg", resize="37x", expires=datetime(2099, 1, 1, tzinfo=UTC))
    assert late.headers["Cache-Control"] == "public, max-age=86400"
    versioned = await site.picture("photos/photo.jpg", resize="37x", version="3")
    assert versioned.headers["Cache-Control"] == "public, max-age=86400, immutable"


async def test_the_name_under_which_a_browser_saves(site: Site) -> None:
    async def disposition(**options: str | bool) -> str:
        reply = await site.picture("photos/photo.jpg", resize="38x", **options)
        return reply.headers["Content-Disposition"]

    assert await disposition(filename="shoe", download=True) == 'attachment; filename="shoe.jpg"'
    assert await disposition(filename="shoe.jpg") == 'inline; filename="shoe.jpg"'
    assert await disposition(filename='ü"; x') == (
        "inline; filename=\"__; x.jpg\"; filename*=UTF-8''%C3%BC%22%3B%20x.jpg"
    )
    assert await disposition(filename="%41") == "inline; filename=\"_41.jpg\"; filename*=UTF-8''%2541.jpg"


async def test_the_density_of_a_url_multiplies_sizes(site: Site) -> None:
    reply = await site.picture("photos/photo.jpg", resize="20x", dpr=2)
    assert (reply.picture.size[0], reply.headers["Content-DPR"]) == (40, "2")
    reply = await site.picture("photos/photo.jpg", resize="20x", dpr=0.5)
    assert (reply.picture.size[0], reply.headers["Content-DPR"]) == (10, "0.5")


async def test_scripts_of_other_sites_may_ask(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", resize="20x")
    reply = await site.get(
        url, method="OPTIONS", Origin="https://a.example", Access_Control_Request_Method="GET"
    )
    assert reply.status == 204
    assert reply.headers["Access-Control-Allow-Origin"] == "*"
    assert "GET" in reply.headers["Access-Control-Allow-Methods"]
    assert {"If-None-Match", "Range"} <= set(reply.headers["Access-Control-Allow-Headers"].split(", "))
    assert reply.headers["Access-Control-Max-Age"] == "86400"


async def test_each_picture_is_made_and_counted_once(site: Site) -> None:
    used = await site.used()
    replies = [await site.picture("photos/photo.jpg", resize="39x", sepia=30) for _ in range(3)]
    assert {hashlib.sha256(reply.body).digest() for reply in replies} == {
        hashlib.sha256(replies[0].body).digest()
    }
    assert [reply.headers["X-Svc-Cache"] for reply in replies] == ["miss", "hit", "hit"]
    assert await site.used() == used + 1


async def test_a_preset_is_named_in_urls(site: Site) -> None:
    reply = await site.picture("photos/photo.jpg", preset="card", resize_width=15)
    assert (reply.headers["Content-Type"], reply.picture.size) == ("image/png", (15, 20))


ODD_TIMES = [
    "Fri, 31 Dec 9999 23:59:59 -0100", "Mon, 01 Jan 0001 00:00:00 +0100",
    "Fri, 31 Dec 99999 23:59:59 GMT", "Sat, 21 Nov 2026 10:00:00 +9999", "9" * 400, "-1", "", "Thu",
]  # fmt: skip


@pytest.mark.parametrize("name", ["Last-Modified", "Expires", "Date", "Age", "Cache-Control", "Retry-After"])
async def test_times_of_a_source_that_no_header_can_state_are_as_if_untold(site: Site, name: str) -> None:
    for number, text in enumerate(ODD_TIMES):
        headers = {name: f"max-age={text}" if name == "Cache-Control" else text}
        headers = {"Expires": "Sat, 21 Nov 2026 10:00:00 GMT", **headers} if name == "Date" else headers
        path = f"/pictures/{name}-{number}.png"
        site.web.pages[path] = Page(encoded.png().data, headers)
        for _ in range(2):
            reply = await site.get(site.signer.url(f"web{path.removeprefix('/pictures')}", resize="22x"))
            assert reply.status == 200, reply.body
            assert "Last-Modified" not in reply.headers or number


@pytest.mark.parametrize("changed", [2.0**38, -(2.0**33), float("inf"), float("nan")])
async def test_times_of_files_that_no_header_can_state_are_not_known(changed: float) -> None:
    assert Identity("1", changed).last_modified is None


async def test_a_web_source_is_asked_again_only_if_it_changed(site: Site) -> None:
    page = Page(
        encoded.png().data,
        {"ETag": '"1"', "Cache-Control": "no-cache", "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"},
    )
    site.web.pages["/pictures/asked.png"] = page
    url = site.signer.url("web/asked.png", resize="22x", format="png")
    first = await site.get(url)
    assert first.headers["Last-Modified"] == page.headers["Last-Modified"]
    deadline = time.monotonic() + 60
    while (
        "304 /pictures/asked.png" not in site.web.log
    ):  # a stale picture is answered while its source is asked
        assert (await site.get(url)).body == first.body
        assert time.monotonic() < deadline
    assert site.web.log.count("200 /pictures/asked.png") == 1
