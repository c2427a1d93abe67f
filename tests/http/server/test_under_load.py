"""Many requests at once: nobody is held up, what runs is finished, what is too much is refused."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import signal
import socket
import ssl
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import attrs
import pytest
import pytest_asyncio
from aiohttp import web

from tests.http import watched_service
from tests.http.calls import Reply, assert_failure, call, upload, used
from tests.http.service_process import Service, await_start, running, start
from tests.http.sources import serving
from tests.support import encoded, photos
from tests.support.processes import forked_workers_of, kill_worker

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG_JSON = (
    b'{"url": "' + b"a" * 900_000 + b'"}',
    b'{"url": [' + b"1," * 450_000 + b"1]}",
    b'{"url": "x", ' + b",".join(b'"%d": %d' % (n, n) for n in range(60_000)) + b"}",
    b'{"url": "x", ' + b",".join(b'"%d": %d' % (n, n) for n in range(490)) + b"}",
    b'{"url": "x", "filter": {' + b",".join(b'"%d": {}' % n for n in range(60_000)) + b"}}",
    b'{"url": [' + b"1," * 9_900 + b"1]}",
    b'{"url": "x", ' + b",".join(b'"%d": %d' % (n, n) for n in range(4_900)) + b"}",
    b'{"url": "x", "filter": {' + b",".join(b'"%d": {}' % n for n in range(3_300)) + b"}}",
)  # fmt: skip


@pytest.fixture(scope="module")
def large() -> bytes:
    """A photograph that takes a while."""
    data: bytes = photos.as_vips(photos.mosaic(2400, 1800)).jpegsave_buffer(Q=90)
    return data


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


@pytest.fixture(scope="module")
def longest_pause() -> float:
    """Some 50 ms, and longer on a slow machine: less than the work that holds a loop up on purpose."""

    def seconds() -> float:
        start = time.thread_time()
        watched_service.work()
        return time.thread_time() - start

    return 0.8 * min(seconds() for _ in range(5))


@pytest.fixture(scope="module")
def packed() -> bytes:
    """Much in little."""
    return gzip.compress(bytes(200_000_000), compresslevel=1)


@attrs.frozen
class Watched:
    """A service that watches its own loop."""

    client: aiohttp.ClientSession
    port: int
    tls: ssl.SSLContext
    process: asyncio.subprocess.Process

    def hold_up(self, how: str) -> None:
        """Hold its loop up, by sleep, by work or by a thread."""
        assert self.process.stdin is not None
        self.process.stdin.write(how.encode() + b"\n")

    async def longest(self) -> float:
        """How long its loop was held up at most since the last time, in seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"\n")
        return float(await self.process.stdout.readline())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory, large: bytes) -> AsyncIterator[Watched]:
    """Warmed up, as the first requests still load what is needed later."""
    state = tmp_path_factory.mktemp("watched") / "state"
    command = [sys.executable, "-m", "tests.http.watched_service", str(state)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    address, key = (await process.stdout.readline()).decode().split()
    tls = ssl.create_default_context(cafile=state / "localhost.pem")
    headers = {"Authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(address, headers=headers, connector=connector) as client:
        watched = Watched(client, int(address.rpartition(":")[2]), tls, process)
        await _load(client, large, 1)
        await watched.longest()
        yield watched
    process.stdin.close()
    assert await process.wait() == 0


async def test_the_loop_is_never_held_up(watched: Watched, large: bytes, longest_pause: float) -> None:
    """Uploads, large binary answers, broken forms and long JSON side by side, all the time.

    What a request does to the loop, it does every time; what the machine does, it does now and then.
    """

    async def pause() -> float:
        await _load(watched.client, large, 2)
        return await watched.longest()

    await least(pause, longest_pause)


async def least(pause: Callable[[], Awaitable[float]], bound: float) -> None:
    """Check that the least of a few pauses is within a bound."""
    pauses: list[float] = []
    while len(pauses) < 4 and min(pauses, default=bound) >= bound:
        pauses.append(await pause())
    assert min(pauses) < bound, pauses


@pytest.mark.parametrize("how", ["sleep", "work"])
async def test_what_holds_the_loop_up_is_seen(
    how: str, watched: Watched, large: bytes, longest_pause: float
) -> None:
    async def hold() -> None:
        await asyncio.sleep(0.5)
        watched.hold_up(how)

    async def pause() -> float:
        await asyncio.gather(_load(watched.client, large, 1), hold())
        return await watched.longest()

    pauses: list[float] = []
    while len(pauses) < 4 and max(pauses, default=0) <= longest_pause:
        pauses.append(await pause())
    assert max(pauses) > longest_pause, pauses


async def test_threads_that_work_leave_the_loop_its_turns(
    watched: Watched, large: bytes, longest_pause: float
) -> None:
    """Who has the interpreter's lock gives it away soon, as the loop takes it again many times in a row."""

    async def work() -> None:
        for _ in range(4):
            watched.hold_up("thread")
            await asyncio.sleep(0.5)

    async def pause() -> float:
        await asyncio.gather(_load(watched.client, large, 2), work())
        return await watched.longest()

    await least(pause, longest_pause)


@pytest.mark.parametrize("key", ["right", "wrong"])
@pytest.mark.parametrize(
    ("path", "kind"),
    [("/1.0/fetch", "application/json"), ("/1.0/upload", "multipart/form-data; boundary=x")],
)
async def test_compressed_bodies_are_not_decompressed(
    path: str, kind: str, key: str, watched: Watched, packed: bytes, longest_pause: float
) -> None:
    bearer = watched.client.headers["Authorization"] if key == "right" else "Bearer isk_wrong"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\nContent-Type: {kind}\r\n"
        f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\nConnection: close\r\n\r\n"
    )

    async def pause() -> float:
        await watched.longest()
        reader, writer = await asyncio.open_connection("localhost", watched.port, ssl=watched.tls)
        writer.write(head.encode() + packed)
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 401" if key == "wrong" else b"HTTP/1.1 415")
        return await watched.longest()

    await least(pause, longest_pause)


async def _load(client: aiohttp.ClientSession, large: bytes, seconds: float) -> None:
    """Clients that each send the next request when the last one is answered."""
    end = time.monotonic() + seconds
    png = {"output": {"format": "png"}, "response": {"mode": "binary"}}
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    json_ = {"Content-Type": "application/json"}
    long_json = itertools.cycle(LONG_JSON)
    clients: list[tuple[set[int], Callable[[], Awaitable[Reply]]]] = [
        *[({200}, lambda: call(client, "GET", "/1.0/account"))] * 4,
        *[({200}, lambda: upload(client, large, {"resize": {"width": 100}}))] * 3,
        ({200}, lambda: upload(client, large, png)),
        ({400}, lambda: call(client, "POST", "/1.0/upload", data=b"--x\r\nnothing", headers=form)),
        ({422}, lambda: upload(client, b"x" * 2_000_000)),
        ({400, 422}, lambda: call(client, "POST", "/1.0/fetch", data=next(long_json), headers=json_)),
    ]

    async def repeat(statuses: set[int], request: Callable[[], Awaitable[Reply]]) -> None:
        while time.monotonic() < end:
            assert (await request()).status in statuses

    await asyncio.gather(*(repeat(statuses, request) for statuses, request in clients))


async def test_what_runs_is_finished_at_the_end(tmp_path: Path, large: bytes) -> None:
    process = start(tmp_path / "state")
    service = await asyncio.to_thread(await_start, process, tmp_path / "state")
    async with service.client() as client:
        request = {"filter": {"blur": {"mode": "motion", "value": 100}}, "output": {"format": "png"}}
        slow = asyncio.create_task(upload(client, large, request))
        async with asyncio.timeout(60):
            while not service.leftovers():
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            while _accepts(service.port):
                await asyncio.sleep(0.01)
        reply = await slow
        assert (reply.status, reply.json["output"]["format"]) == (200, "png")
    assert await asyncio.to_thread(process.wait, 60) == 0
    process.communicate()
    assert service.leftovers() == []


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
    except ConnectionError:
        return False
    return True


async def test_more_than_there_is_room_for_is_refused(tmp_path: Path, large: bytes) -> None:
    with running(tmp_path / "state", {"workers.queue": 2}) as service:
        async with service.client() as client:
            replies = await asyncio.gather(*(upload(client, large) for _ in range(8)))
            refused = [reply for reply in replies if reply.status == 503]
            assert {reply.status for reply in replies} == {200, 503}
            for reply in refused:
                assert_failure(reply, 503, "overloaded", "Retry in")
                assert int(reply.headers["Retry-After"]) > 0
            assert await used(client) == 8 - len(refused)
        assert service.leftovers() == []


async def test_a_worker_that_dies_while_nobody_asks_costs_no_request(tmp_path: Path, large: bytes) -> None:
    with running(tmp_path / "state") as service:
        async with service.client() as client:
            for _ in range(2):
                kill_worker(service.process.pid, workers_of=forked_workers_of)
                await asyncio.sleep(0.5)
                replies = await asyncio.gather(*(upload(client, large) for _ in range(2)))
                assert [reply.status for reply in replies] == [200, 200]


async def test_slow_bodies_and_sources_come_to_an_end(tmp_path: Path) -> None:
    async def hang(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b"{"
            await asyncio.sleep(0.2)

    settings = {"server.body_seconds": 1, "fetch.private_allowed": "127.0.0.1", "fetch.total_seconds": 1}
    with running(tmp_path / "state", settings) as service:
        async with serving({"/hang": hang}) as url, service.client() as client:
            headers = {"Content-Type": "application/json"}
            reply = await call(client, "POST", "/1.0/fetch", data=drip(), headers=headers)
            assert_failure(reply, 408, "body_too_slow", "1 second:")
            assert reply.headers["Connection"] == "close"
            reply = await call(client, "POST", "/1.0/fetch", json={"url": f"{url}/hang"})
            assert_failure(reply, 422, "source_unreachable", "1 second")
            assert await used(client) == 0
        assert service.leftovers() == []


async def test_endless_bodies_and_sources_that_lie_leave_nothing(tmp_path: Path) -> None:
    async def long(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"x" * 65536)
        return response

    async def text(request: web.Request) -> web.Response:
        return web.Response(text="no picture")

    settings = {
        "fetch.private_allowed": "127.0.0.1", "limits.source_bytes": 100_000, "limits.json_bytes": 1000,
    }  # fmt: skip
    expected = {"/long": (413, "source_too_large"),
                "/text": (422, "unsupported_format"), "/none": (422, "source_unreachable")}  # fmt: skip
    with running(tmp_path / "state", settings) as service:
        taken = 0

        async def flood() -> AsyncIterator[bytes]:
            nonlocal taken
            while True:
                taken += 65536
                yield b" " * 65536

        async with serving({"/long": long, "/text": text}) as url, service.client() as client:
            headers = {"Content-Type": "application/json"}
            try:
                reply = await call(client, "POST", "/1.0/fetch", data=flood(), headers=headers)
                assert_failure(reply, 413, "body_too_large", "1,000 bytes")
            except aiohttp.ClientError:
                pass  # the connection may be closed before the answer is read
            assert taken < 20_000_000
            reply = await upload(client, b"x" * 200_000)
            assert_failure(reply, 413, "body_too_large", "bytes")
            for path, (status, slug) in expected.items():
                reply = await call(client, "POST", "/1.0/fetch", json={"url": url + path})
                assert_failure(reply, status, slug)
            assert await used(client) == 0
        assert service.leftovers() == []
        assert list((service.state / "temporary").glob("*")) == []


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (LONG_JSON[0], 422, "must be string of 1 to 8192 characters"),
        (LONG_JSON[1], 400, "more than 10,000 keys and values"),
        (LONG_JSON[2], 400, "more than 10,000 keys and values"),
        (LONG_JSON[3], 422, "has no '0' parameter"),
        (LONG_JSON[4], 400, "more than 10,000 keys and values"),
        (LONG_JSON[5], 422, "at most 500 values"),
        (b"[" + LONG_JSON[5] + b"]", 422, "must be a JSON object"),
        (LONG_JSON[6], 422, "at most 500 values"),
        (LONG_JSON[7], 422, "at most 500 values"),
        (b"{" + b",".join(b'"%d": 1' % (n % 4_000) for n in range(4_900)) + b"}", 400, "more than once"),
    ],
    ids=[
        "text", "too many items", "too many keys", "wrong keys", "too many objects", "items", "array outside",
        "keys", "objects", "repeated keys",
    ],
)  # fmt: skip
async def test_long_json_is_refused_briefly(
    body: bytes, status: int, words: str, client: aiohttp.ClientSession
) -> None:
    headers = {"Content-Type": "application/json"}
    reply = await call(client, "POST", "/1.0/fetch", data=body, headers=headers)
    assert reply.status == status
    assert words in reply.json["message"]
    assert len(reply.body) < 500_000


@pytest.mark.parametrize(
    "body",
    [
        b"", b"--x--\r\n", b"--x\r\n\r\n", b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\nabc",
        b"--y\r\n\r\n--y--\r\n", b"--x\r\nContent-Disposition: nonsense\r\n\r\nabc\r\n--x--\r\n",
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\na\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nb\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\na\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="data"\r\n\r\n{nope\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n'
        b"Content-Transfer-Encoding: odd\r\n\r\na\r\n--x--\r\n",
        b"--x\r\n" + b"H: v\r\n" * 5000 + b"\r\n\r\n--x--\r\n",
        b"\x00" * 1000,
    ],
)  # fmt: skip
async def test_broken_forms_are_clear_errors(body: bytes, client: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    reply = await call(client, "POST", "/1.0/upload", data=body, headers=headers)
    assert reply.status in (400, 422)
    assert reply.json["error"] in ("invalid_multipart", "invalid_parameter", "invalid_json")


@pytest.mark.parametrize(
    "kind",
    ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "b" * 99],
)
async def test_forms_need_a_boundary(kind: str, client: aiohttp.ClientSession) -> None:
    reply = await call(client, "POST", "/1.0/upload", data=b"--x--", headers={"Content-Type": kind})
    assert_failure(reply, 400, "invalid_multipart")


async def test_a_proxy_that_ends_tls_is_believed_only_where_it_is_trusted(
    service: Service, tmp_path: Path
) -> None:
    photo = encoded.jpeg().data
    with running(tmp_path / "state", {"server.trusted_proxies": "127.0.0.1/32"}) as trusting:
        plain = f"http://127.0.0.1:{trusting.port}"
        key = {"Authorization": f"Bearer {trusting.key}"}
        async with aiohttp.ClientSession(plain, headers=key) as proxy:
            forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
            assert (await upload(proxy, photo, headers=forwarded)).status == 200
            for proto in ({}, {"X-Forwarded-Proto": "http"}, {"X-Forwarded-Proto": ""}):
                reply = await call(proxy, "GET", "/1.0/account", headers=proto)
                assert_failure(reply, 403, "https_required")
        async with trusting.client() as proxy:
            assert (await call(proxy, "GET", "/1.0/account")).status == 200
            reply = await call(proxy, "GET", "/1.0/account", headers={"X-Forwarded-Proto": "http"})
            assert_failure(reply, 403, "https_required")
        remaining = []
        async with aiohttp.ClientSession(plain) as proxy:
            for claimed in (
                "198.51.100.1",
                "198.51.100.2",
            ):  # by the client; the proxy adds a line of its own
                lines = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", claimed)]
                reply = await call(
                    proxy, "GET", "/1.0/account", headers=[*lines, ("X-Forwarded-For", "203.0.113.8")]
                )
                remaining.append(int(reply.headers["X-RateLimit-Remaining"]))
        assert remaining[1] == remaining[0] - 1
    async with aiohttp.ClientSession(f"http://127.0.0.1:{service.port}") as stranger:
        reply = await call(stranger, "GET", "/1.0/account", headers={"X-Forwarded-Proto": "https"})
        assert_failure(reply, 403, "https_required")


async def test_health(client: aiohttp.ClientSession) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await call(client, "GET", path)).json == {"success": True, "code": 200}
