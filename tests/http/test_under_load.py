"""Many requests at once: nobody is held up, what runs is finished, what is too much is refused."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.http.calls import assert_failure, call, upload, used
from tests.http.running import Service, await_start, running, start
from tests.http.sources import serving
from tests.support import encoded, photos

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONGEST_PAUSE = 0.05


@pytest.fixture(scope="module")
def large() -> bytes:
    """A photograph that takes a while."""
    data: bytes = photos.as_vips(photos.mosaic(2400, 1800)).jpegsave_buffer(Q=90)
    return data


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


async def test_the_loop_is_never_held_up(large: bytes, tmp_path: Path) -> None:
    """Uploads, large binary answers, broken forms and long JSON side by side.

    The quietest of several times counts, as the first ones still load what is needed later.
    """
    state = tmp_path / "state"
    command = [sys.executable, "-m", "tests.http.watched_service", str(state)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    address, key = (await process.stdout.readline()).decode().split()
    tls = ssl.create_default_context(cafile=state / "localhost.pem")
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    headers = {"Authorization": f"Bearer {key}"}
    pauses = []
    async with aiohttp.ClientSession(address, headers=headers, connector=connector) as client:
        for _ in range(8):
            await _burst(client, large)
            process.stdin.write(b"\n")
            pauses.append(float(await process.stdout.readline()))
    process.stdin.close()
    assert await process.wait() == 0
    assert min(pauses[1:]) < LONGEST_PAUSE, pauses


async def _burst(client: aiohttp.ClientSession, large: bytes) -> None:
    small = {"resize": {"width": 100}}
    png = {"output": {"format": "png"}, "response": {"mode": "binary"}}
    broken = {"data": b"--x\r\nnothing", "headers": {"Content-Type": "multipart/form-data; boundary=x"}}
    long = {"data": b'{"url": "' + b"a" * 900_000 + b'"}', "headers": {"Content-Type": "application/json"}}
    replies = await asyncio.gather(
        *(upload(client, large, small) for _ in range(8)),
        *(upload(client, large, png) for _ in range(2)),
        *(call(client, "GET", "/1.0/account") for _ in range(50)),
        *(call(client, "POST", "/1.0/upload", **broken) for _ in range(10)),
        *(call(client, "POST", "/1.0/fetch", **long) for _ in range(10)),
        *(upload(client, b"x" * 2_000_000) for _ in range(5)),
    )
    assert sorted({reply.status for reply in replies}) == [200, 400, 422]
    assert max(len(reply.body) for reply in replies) > 2_000_000


async def test_what_runs_is_finished_at_the_end(tmp_path: Path, large: bytes) -> None:
    process = start(tmp_path / "state")
    service = await asyncio.to_thread(await_start, process, tmp_path / "state")
    async with service.client() as client:
        request = {"filter": {"blur": {"mode": "motion", "value": 100}}, "output": {"format": "png"}}
        slow = asyncio.create_task(upload(client, large, request))
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.3)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("localhost", service.port), timeout=2)
        reply = await slow
        assert (reply.status, reply.json["output"]["format"]) == (200, "png")
    assert await asyncio.to_thread(process.wait, 60) == 0
    process.communicate()
    assert service.leftovers() == []


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


async def test_slow_and_endless_bodies_come_to_an_end(tmp_path: Path) -> None:
    settings = {"server.body_seconds": 1, "limits.source_bytes": 100_000, "limits.json_bytes": 1000}
    with running(tmp_path / "state", settings) as service:
        taken = 0

        async def drip() -> AsyncIterator[bytes]:
            while True:
                yield b"{"
                await asyncio.sleep(0.2)

        async def flood() -> AsyncIterator[bytes]:
            nonlocal taken
            while True:
                taken += 65536
                yield b" " * 65536

        async with service.client() as client:
            headers = {"Content-Type": "application/json"}
            reply = await call(client, "POST", "/1.0/fetch", data=drip(), headers=headers)
            assert_failure(reply, 408, "body_too_slow", "1 seconds")
            try:
                reply = await call(client, "POST", "/1.0/fetch", data=flood(), headers=headers)
                assert_failure(reply, 413, "body_too_large", "1,000 bytes")
            except aiohttp.ClientError:
                pass  # the connection may be closed before the answer is read
            assert taken < 20_000_000
            reply = await upload(client, b"x" * 200_000)
            assert_failure(reply, 413, "body_too_large", "bytes")
            assert await used(client) == 0
        assert service.leftovers() == []


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


async def test_a_proxy_that_ends_tls_is_believed_only_where_it_is_trusted(tmp_path: Path) -> None:
    photo = encoded.jpeg().data
    with running(tmp_path / "state", {"server.trusted_proxies": "127.0.0.1/32"}) as service:
        plain = f"http://127.0.0.1:{service.port}"
        key = {"Authorization": f"Bearer {service.key}"}
        async with aiohttp.ClientSession(plain, headers=key) as proxy:
            forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
            assert (await upload(proxy, photo, headers=forwarded)).status == 200
            for proto in ({}, {"X-Forwarded-Proto": "http"}):
                reply = await call(proxy, "GET", "/1.0/account", headers=proto)
                assert_failure(reply, 403, "https_required")
    with running(tmp_path / "strict") as service:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{service.port}") as stranger:
            reply = await call(stranger, "GET", "/1.0/account", headers={"X-Forwarded-Proto": "https"})
            assert_failure(reply, 403, "https_required")


async def test_health(client: aiohttp.ClientSession) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await call(client, "GET", path)).json == {"success": True, "code": 200}


async def test_sources_that_hang_or_lie_leave_nothing(tmp_path: Path) -> None:
    async def hang(request: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async def long(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b"x" * 65536)
        return response

    async def text(request: web.Request) -> web.Response:
        return web.Response(text="no picture")

    settings = {
        "fetch.private_allowed": "127.0.0.1", "fetch.total_seconds": 1, "limits.source_bytes": 100_000,
    }  # fmt: skip
    expected = {"/hang": (422, "source_unreachable"), "/long": (413, "source_too_large"),
                "/text": (422, "unsupported_format"), "/none": (422, "source_unreachable")}  # fmt: skip
    with running(tmp_path / "state", settings) as service:
        async with serving({"/hang": hang, "/long": long, "/text": text}) as url, service.client() as client:
            for path, (status, slug) in expected.items():
                reply = await call(client, "POST", "/1.0/fetch", json={"url": url + path})
                assert_failure(reply, status, slug)
            assert await used(client) == 0
        assert service.leftovers() == []
        assert list((service.state / "temporary").glob("*")) == []
