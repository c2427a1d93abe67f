"""What bounds the sources of previews: their bytes, number and time, and what they cost."""

from __future__ import annotations

import asyncio
import contextlib
import io
import time
import uuid
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
import pytest_asyncio
from PIL import Image

from tests.http.calls import assert_failure, call, upload, used
from tests.http.playground.page import PICTURES
from tests.http.service_process import Service, running
from tests.http.sources import serving
from tests.support.processes import listeners_of, private_memory

pytestmark = pytest.mark.asyncio

SOURCE_BYTES = 2**20
SOURCES = "temporary-sources"
LEFT = f"1000000000-3000-{uuid.UUID(int=1)}_{'0' * 32}.jpg"
PHOTO = (PICTURES / "portrait.jpg").read_bytes()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with little room for sources, which has an expired one of an earlier run."""
    state = tmp_path_factory.mktemp("small") / "state"
    state.mkdir(mode=0o700)
    settings = {
        "fetch.private_allowed": "127.0.0.1",
        "playground.source_bytes": SOURCE_BYTES,
        "rate.requests": 100_000,
        "rate.period_seconds": 86_400,
    }
    left = state / SOURCES / LEFT
    left.parent.mkdir(mode=0o700)
    left.write_bytes(PHOTO)
    with running(state, settings) as service:
        yield service


@pytest_asyncio.fixture
async def client(small: Service) -> AsyncIterator[aiohttp.ClientSession]:
    """A client with an account of its own."""
    async with small.client(key=small.new_key()) as client:
        yield client


def kept(service: Service) -> dict[str, int]:
    """The sources of all keys."""
    return {path.name: path.stat().st_size for path in (service.state / SOURCES).iterdir()}


def bitmap(number: int, size: int = 3000) -> bytes:
    """A picture of so many bytes, different for each number."""
    data = io.BytesIO()
    side = int((size / 3) ** 0.5)
    Image.new("RGB", (side, side), (number, 0, 0)).save(data, "BMP")
    return data.getvalue()


@contextlib.asynccontextmanager
async def photo_at(data: bytes) -> AsyncIterator[str]:
    """The URL of a picture that nobody may keep."""

    async def answer(request: aiohttp.web.Request) -> aiohttp.web.Response:
        headers = {"Cache-Control": "no-store"}
        return aiohttp.web.Response(body=data, content_type="image/bmp", headers=headers)

    async with serving({"/photo.bmp": answer}) as url:
        yield f"{url}/photo.bmp"


async def keep(client: aiohttp.ClientSession, data: bytes) -> str:
    reply = await upload(client, data, path="/playground/sources")
    assert reply.status == 200, reply.body
    return str(reply.json["source"]["id"])


async def test_an_upload_of_more_than_a_keys_share_is_refused_and_takes_nothing_from_others(
    client: aiohttp.ClientSession, small: Service
) -> None:
    async with small.client() as other:
        await keep(other, bitmap(1, 200_000))
    before = kept(small)
    reply = await upload(client, bitmap(2, SOURCE_BYTES // 4 + 4000), path="/playground/sources")
    assert_failure(reply, 413, "body_too_large")
    assert kept(small) == before


async def test_a_url_of_more_than_a_keys_share_is_refused_and_takes_nothing_from_others(
    client: aiohttp.ClientSession, small: Service
) -> None:
    async with small.client() as other:
        await keep(other, bitmap(1, 200_000))
    before = kept(small)
    async with photo_at(bitmap(2, SOURCE_BYTES // 4 + 4000)) as url:
        reply = await call(client, "POST", "/playground/sources", json={"url": url})
        assert_failure(reply, 413, "source_too_large")
    assert kept(small) == before
    async with photo_at(bitmap(3, SOURCE_BYTES // 4 - 4000)) as url:
        reply = await call(client, "POST", "/playground/sources", json={"url": url})
    assert reply.status == 200


async def test_a_fetched_source_is_given_up_when_it_is_kept(
    client: aiohttp.ClientSession, small: Service
) -> None:
    async with photo_at(bitmap(4)) as url:
        reply = await call(client, "POST", "/playground/sources", json={"url": url})
    assert reply.status == 200
    assert small.leftovers() == []


async def test_a_key_has_eight_sources(client: aiohttp.ClientSession) -> None:
    ids = [await keep(client, bitmap(number)) for number in range(10, 19)]
    statuses = [(await call(client, "GET", f"/playground/sources/{id_}")).status for id_ in ids]
    assert statuses == [404] + 8 * [200]


async def test_a_source_stays_as_long_as_a_result(client: aiohttp.ClientSession, small: Service) -> None:
    id_ = await keep(client, bitmap(20))
    (path,) = (small.state / SOURCES).glob(f"*{id_}")
    expires, rest = path.name.split("-", 1)
    assert -60 < int(expires) / 1000 - time.time() - 3600 <= 1
    path.rename(path.with_name(f"{int(1000 * time.time())}-{rest}"))
    assert (await call(client, "GET", f"/playground/sources/{id_}")).status == 404


async def test_expired_sources_are_deleted(small: Service) -> None:
    deadline = time.monotonic() + 60
    while LEFT in kept(small):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


async def test_keeping_and_reading_count_in_the_rate_and_previews_in_the_quota(
    client: aiohttp.ClientSession,
) -> None:
    """A period of the rate is a day."""
    first = await call(client, "GET", "/1.0/account")
    uploaded = await upload(client, bitmap(21), path="/playground/sources")
    async with photo_at(bitmap(22)) as url:
        fetched = await call(client, "POST", "/playground/sources", json={"url": url})
    path = f"/playground/previews/{uploaded.json['source']['id']}"
    read = await call(client, "GET", f"/playground/sources/{fetched.json['source']['id']}")
    assert await used(client) == 0
    before = await call(client, "GET", "/1.0/account")
    for number, window in enumerate((None, {"width": 10, "height": 10}), 1):
        made = await call(client, "POST", path, json={"request": {}, "window": window})
        assert made.status == 200
        assert await used(client) == number
    replies = (first, uploaded, fetched, read, await call(client, "GET", "/1.0/account"))
    assert before.status == 200
    left = [int(reply.headers["X-RateLimit-Remaining"]) for reply in replies]
    assert [left[0] - each for each in left] == [0, 1, 2, 3, 10]


async def test_the_original_is_a_download_that_no_page_runs(client: aiohttp.ClientSession) -> None:
    original = await call(client, "GET", f"/playground/sources/{await keep(client, PHOTO)}")
    assert original.body == PHOTO
    assert original.headers["Content-Disposition"] == "attachment"
    assert original.headers["X-Content-Type-Options"] == "nosniff"


async def test_originals_are_sent_from_their_files(service: Service) -> None:
    """Those who read slowly take no memory for them."""
    original = bitmap(23, 40_000_000)
    async with service.client(key=service.new_key()) as client, contextlib.AsyncExitStack() as readers:
        id_ = await keep(client, original)
        before = sum(map(private_memory, listeners_of(service.process.pid)))
        for _ in range(3):
            answer = await readers.enter_async_context(client.get(f"/playground/sources/{id_}"))
            assert answer.status == 200
        grown = sum(map(private_memory, listeners_of(service.process.pid))) - before
        assert grown < len(original)
        assert await answer.read() == original
