"""Objects that go in parts, of which one or the other fails."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

import imgsvc_stores as stores
from imgsvc_stores.providers.multipart import send_parts
from tests.stores.conftest import Put
from tests.stores.servers.applications import serving
from tests.stores.servers.failing import (
    CANARY,
    SPECS,
    TOKENS,
    Failing,
    document,
    endpoints,
    write,
)
from tests.stores.servers.parts import failure, parts
from tests.stores.watch import busiest_round

_LARGE = 12_000_000
_IN_PARTS = pytest.mark.parametrize("provider", ["aws", "alibaba", "ibm", "microsoft"], indirect=True)


@_IN_PARTS
@pytest.mark.parametrize("word", ["begin", "part", "complete"])
def test_a_failure_that_lasts_ends_with_the_time_and_its_reason(
    provider: str, keyfile: dict[str, str], word: str
) -> None:
    if (provider, word) == ("microsoft", "begin"):
        pytest.skip("blocks need no beginning")
    with parts(lambda asked: failure(503) if asked == word else None) as (url, server):
        with pytest.raises(stores.StoreUnavailable, match=r"within 2 seconds; the last attempt.*SlowDown"):
            write(provider, url, keyfile, bytes(_LARGE), seconds=2)
        assert word in server.asked


@_IN_PARTS
def test_a_part_that_fails_once_is_sent_again(provider: str, keyfile: dict[str, str]) -> None:
    failures = iter([failure(503)])
    with parts(lambda asked: next(failures, None) if asked == "part" else None) as (url, _):
        assert write(provider, url, keyfile, bytes(_LARGE), seconds=20).endswith("/cat.webp")


def test_a_part_that_fails_ends_those_that_are_sent() -> None:
    sent: list[int] = []

    async def send(number: int, part: bytes) -> None:
        sent.append(number)
        if number == 1:
            raise ConnectionError
        await asyncio.sleep(60)

    async def run() -> None:
        async with asyncio.timeout(10):
            await send_parts(bytes(30), 10, send, pace=lambda: asyncio.sleep(0))

    with pytest.raises(ConnectionError):
        asyncio.run(run())
    assert 1 in sent


@_IN_PARTS
def test_a_part_that_fails_leaves_the_time_limits_of_others_as_they_are(provider: str) -> None:
    """A task that counts as cancelled takes every limit around it for its own end."""
    failures = iter([failure(503)])

    async def run(url: str) -> None:
        async with stores.open_store(document(provider), endpoints=endpoints(provider, url)) as store:
            try:
                async with asyncio.timeout(None) as limit:
                    await store.put(stores.StoredObject(bytes(_LARGE), "large.webp", "image/webp"))
                    limit.reschedule(0)
                    await asyncio.sleep(60)
            except TimeoutError:
                assert limit.expired()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    with parts(lambda asked: next(failures, None) if asked == "part" else None) as (url, _):
        asyncio.run(run(url))


@pytest.mark.parametrize("provider", ["aws", "alibaba", "ibm"], indirect=True)
def test_taking_an_upload_back_takes_little_more_than_the_time_given(
    provider: str, keyfile: dict[str, str]
) -> None:
    with parts(lambda asked: 3.0 if asked in ("part", "abort") else None) as (url, server):
        with pytest.raises(stores.StoreUnavailable, match=r"within 0\.5 seconds"):
            write(provider, url, keyfile, bytes(_LARGE), seconds=0.5)
        assert "abort" in server.asked
        assert "abort" not in server.error_of_status


def test_tags_come_with_the_beginning_so_that_no_later_step_can_fail(keyfile: dict[str, str]) -> None:
    """An object that stands under the name is there until a whole one takes its place."""
    with parts(lambda asked: failure(403) if asked in ("tag", "delete") else None) as (url, server):
        write("aws", url, keyfile, bytes(_LARGE), 20, tags={"project": "cats + dogs"})
    assert sorted(server.asked) == ["begin", "complete", "part", "part", "part"]
    assert server.headers[0]["x-amz-tagging"] == "project=cats%20%2B%20dogs"


@pytest.mark.parametrize("provider", ["aws", "alibaba", "ibm"], indirect=True)
def test_an_upload_that_ends_with_an_error_is_none(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    """S3 and its like answer 200 at once, and may find an error afterwards."""

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith(TOKENS):
            return await server.handle(request)
        await request.read()
        upload = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
        error = "<Error><Code>InternalError</Code><Message>So it is.</Message></Error>"
        match request.method, "uploads" in request.query:
            case "POST", True:
                return web.Response(text=upload, content_type="application/xml")
            case "POST", _:
                return web.Response(text=error, content_type="application/xml")
        return web.Response(headers={"ETag": '"1"'})

    with (
        serving(lambda app: app.router.add_route("*", "/{path:.*}", answer)) as url,
        pytest.raises(stores.StoreUnavailable, match="InternalError"),
    ):
        write(provider, url, keyfile, data=bytes(12_000_000), seconds=2)


def test_nothing_is_sent_any_more_once_a_write_has_failed(
    server: Failing, provider: str, keyfile: dict[str, str]
) -> None:
    """A large object of which something is refused while the rest is under way."""
    upload = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"

    def answer(number: int) -> web.Response | float:
        match number - (provider in ("alibaba", "ibm")):
            case 0:
                return web.Response(text=upload)
            case 1:
                return web.Response(status=403)
            case _:
                return 2.0

    async def run() -> None:
        server.answer = answer
        names = endpoints(provider, server.url)
        spec = {"provider": provider, **SPECS[provider]}
        async with stores.open_store(spec, keyfiles={"ours": keyfile}, endpoints=names) as store:
            others = asyncio.all_tasks()
            with pytest.raises(stores.StoreRefused):
                await store.put(stores.StoredObject(bytes(30_000_000), "large.webp", "image/webp"))
            assert asyncio.all_tasks() == others, "something runs on"

    asyncio.run(run())


@pytest.mark.parametrize("provider", ["alibaba", "ibm"], indirect=True)
def test_a_server_that_names_no_upload_fails_for_the_moment(server: Failing, put: Put) -> None:
    with pytest.raises(stores.StoreUnavailable, match="no UploadId"):
        put(server.url, seconds=2, data=bytes(12_000_000))


@pytest.mark.parametrize("provider", ["aws", "alibaba"], indirect=True)
def test_an_upload_that_is_given_up_while_it_begins_is_taken_back(provider: str) -> None:
    asked = []

    async def slow(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.query_string.partition('&')[0]}")
        await asyncio.sleep(0.5)
        upload = "<InitiateMultipartUploadResult><UploadId>77</UploadId></InitiateMultipartUploadResult>"
        return web.Response(text=upload, content_type="application/xml")

    async def run(url: str) -> None:
        keys = {"key": CANARY, "secret": CANARY, "bucket": "pictures", "region": "eu-central-1"}
        async with stores.open_store({"provider": provider, **keys}, endpoints={provider: url}) as store:
            item = stores.StoredObject(bytes(30_000_000), "large.webp", "image/webp")
            task = asyncio.create_task(store.put(item))
            while not asked:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with serving(lambda app: app.router.add_route("*", "/{path:.*}", slow)) as url:
        asyncio.run(run(url))
    assert [asked[0].rstrip("="), *asked[1:]] == ["POST uploads", "DELETE uploadId=77"]


@pytest.mark.parametrize(("count", "size"), [(20, 3_000_000), (4, 20_000_000)])
@pytest.mark.parametrize("provider", [*SPECS, "aws"], indirect=True)
def test_many_large_objects_leave_the_event_loop_to_others(
    provider: str, keyfile: dict[str, str], count: int, size: int
) -> None:
    keys = {"key": CANARY, "secret": CANARY, "bucket": "pictures", "region": "us-east-1"}
    spec = {"provider": provider, **SPECS.get(provider, keys)}
    server = Failing()

    async def take(request: web.Request) -> web.Response:
        while await request.content.read(2**20):
            pass
        if request.method == "POST" and "uploads" in request.query:
            upload = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
            return web.Response(text=upload, content_type="application/xml")
        if request.path.endswith(TOKENS) or request.method == "HEAD":
            return await server.handle(request)
        return web.Response(status=201 if request.method == "PUT" else 200, headers={"ETag": '"1"'})

    with serving(lambda app: app.router.add_route("*", "/{path:.*}", take)) as server.url:
        pool = stores.StorePool(endpoints=endpoints(provider, server.url))
        many = [
            stores.open_store({**spec, "path": f"{number}.webp"}, keyfiles={"ours": keyfile}, pool=pool)
            for number in range(count)
        ]
        assert busiest_round(many, bytes(size), pool) < 2**20
