"""URLs that were answered before: their answers are the same, and count, as any other."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from imgsvc_urls import Signer
from tests.http.calls import Reply, assert_failure
from tests.http.service_process import Service, running
from tests.http.ways.conftest import Site, signer_for
from tests.http.ways.web_origin import Page
from tests.support import encoded

pytestmark = pytest.mark.asyncio

STATE = "X-Svc-Cache"
LIMIT = 12
OF_A_REQUEST = {
    "date",
    "x-request-id",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "server-timing",
    "x-svc-cache",
}


@pytest.fixture(scope="module")
def limited(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that allows few requests in a long time, and logs them."""
    settings = {
        "delivery.origins": json.dumps({"photos": f"file://{photos}"}),
        "rate.pictures": LIMIT,
        "rate.pictures_period_seconds": 86_400,
        "monitoring.access_log": "json",
    }
    with running(tmp_path_factory.mktemp("limited") / "state", settings) as service:
        yield service


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("options", [{}, {"version": "1", "filename": "ü"}, {"format": "auto", "dpr": 2}])
async def test_the_second_answer_is_like_the_first(site: Site, method: str, options: Any) -> None:
    url = site.signer.url("photos/photo.jpg", resize="23x", **options)
    first, *others = [await site.get(url, method=method) for _ in range(4)]
    for reply in others:
        assert reply.headers[STATE] == "hit"
        assert (reply.status, reply.body) == (200, first.body)
        assert _common(reply) == _common(first)
    known = await site.get(url, If_None_Match=first.headers["ETag"])
    assert (known.status, known.body, known.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert known.headers["Cache-Control"] == first.headers["Cache-Control"]
    part = await site.get(url, Range="bytes=0-9")
    assert (part.status, len(part.body)) == (206, 10)
    refused = await site.get(url, If_Match='"another"')
    assert refused.status == 412
    assert refused.headers["X-RateLimit-Limit"] == first.headers["X-RateLimit-Limit"]


async def test_each_browser_gets_a_format_that_it_shows(site: Site) -> None:
    url = site.signer.url("photos/photo.jpg", resize="24x", format="auto")
    for _ in range(3):
        for accept in ("image/avif,*/*", "image/webp", "image/png,*/*"):
            reply = await site.get(url, Accept=accept)
            assert (reply.headers["Vary"], reply.status) == ("Accept", 200)
            asked = accept.partition(",")[0]
            assert reply.headers["Content-Type"] == (asked if asked != "image/png" else "image/jpeg")


@pytest.mark.parametrize("source", ["photos/photo.jpg", "web/photo.jpg"])
async def test_a_url_expires_although_it_was_answered_before(site: Site, source: str) -> None:
    site.web.pages["/pictures/photo.jpg"] = Page(encoded.jpeg().data, {"Cache-Control": "max-age=3600"})
    expires = int(time.time()) + 4
    url, ages = site.signer.url(source, resize="25x", expires=expires), set()
    asked = time.time()
    while (reply := await site.get(url)).status == 200:
        ages.add(int(reply.headers["Cache-Control"].partition("max-age=")[2]))
        assert asked < expires
        await asyncio.sleep(0.05)
        asked = time.time()
    assert_failure(reply, 410, "url_expired")
    assert time.time() >= expires
    assert max(ages) <= 4
    assert len(ages) > 1


async def test_each_answer_is_a_line_and_counts_by_address(limited: Service, photos: Path) -> None:
    signer: Signer = signer_for(limited)
    async with limited.client(key="") as client:
        site: Any = Site(limited, client, signer, photos, None)  # type: ignore[arg-type]
        replies = [await site.picture("photos/photo.jpg", resize="26x") for _ in range(LIMIT + 2)]
    left = [int(reply.headers["X-RateLimit-Remaining"]) for reply in replies]
    assert left == [*range(LIMIT - 1, -1, -1), 0, 0]
    assert [reply.status for reply in replies] == [200] * LIMIT + [429] * 2
    lines = {}
    deadline = time.monotonic() + 60
    while len(lines) < len(replies):
        assert time.monotonic() < deadline
        whole = _log(limited).rpartition("\n")[0].splitlines()  # the last one may still be written
        found = [json.loads(line) for line in whole if line.startswith("{")]
        lines = {line["id"]: line for line in found if "image" in line["endpoint"]}
    accounts = limited.imgsvc("accounts", "list", "--json")
    for reply in replies:
        line = lines[reply.headers["X-Request-Id"]]
        assert (line["status"], line["endpoint"]) == (reply.status, "/1.0/image/{path}")
        assert line["account"] in accounts
        assert line["client"] == "127.0.0.1"
        assert line["sent"] > len(reply.body)


def _common(reply: Reply) -> dict[str, str]:
    """The headers that are the same for each request."""
    lower = {name.lower(): value for name, value in reply.headers.items()}
    return {name: value for name, value in lower.items() if name not in OF_A_REQUEST}


def _log(service: Service) -> str:
    return service.state.with_suffix(".log").read_text()
