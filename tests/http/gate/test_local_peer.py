"""Whose browser a request comes from, if it comes from this machine."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from imgsvc_http.gate.local_peer import is_of_own_user
from tests.http.sources import serving
from tests.support import requires

pytestmark = pytest.mark.asyncio

_NOBODY = 65534


async def _answer(request: web.Request) -> web.Response:
    return web.Response(text=str(is_of_own_user(request)))


async def told(headers: dict[str, str], *, host: str = "127.0.0.1", source: str = "127.0.0.1") -> str:
    async with (
        serving({"/": _answer}, host=host) as url,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=(source, 0))) as client,
        client.get(url, headers=headers) as response,
    ):
        return await response.text()


def other_address() -> str:
    """An address of this machine that is not loopback."""
    listed = Path("/proc/net/fib_trie").read_text()
    own = re.findall(r"-- (\S+)\n\s+/32 host LOCAL", listed)
    found = next((address for address in own if not address.startswith("127.")), None)
    if found is None:
        pytest.skip("this machine has no network beside loopback")
    return found


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Host": "localhost:8444"},
        {"Host": "[::1]:8444"},
        {"Host": "127.0.0.1"},
    ],
)
async def test_pages_of_this_machine_are(headers: dict[str, str]) -> None:
    assert await told(headers) == "True"


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Host": "rebound.example.org"},
        {"Host": "localhost.example.org:8444"},
        {"Host": "192.0.2.1"},
        {"Host": "[::1"},
        {"Host": "::1"},
        {"Host": "evil.com@localhost"},
        {"Host": "localhost#.evil.com"},
        {"Host": "localhost/.evil.com"},
        {"Host": "localhost?.evil.com"},
        {"Host": "localhost:8444.evil.com"},
        {"Host": "localhost:"},
        {"Host": ""},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-Host": "localhost"},
        {"X-Forwarded-Proto": "https"},
        {"X-Forwarded-Server": "proxy"},
        {"X-Real-IP": "127.0.0.1"},
        {"CF-Connecting-IP": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
    ],
)
async def test_pages_of_others_and_what_proxies_pass_on_are_not(headers: dict[str, str]) -> None:
    assert await told(headers) == "False"


async def test_both_ends_of_the_connection_are_loopback() -> None:
    other, local = other_address(), {"Host": "localhost"}
    assert await told(local) == "True"
    assert await told(local, source=other) == "False"
    assert await told(local, host=other) == "False"


async def test_a_request_without_a_host_is_not() -> None:
    async with serving({"/": _answer}) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", URL(url).port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert answer.endswith(b"False")


async def test_a_forwarder_of_the_same_user_is_not_noticed() -> None:
    """It is the client of the service. The documentation warns of it."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, target = await asyncio.open_connection("127.0.0.1", URL(url).port)
        target.write(await reader.readuntil(b"\r\n\r\n"))
        writer.write(await upstream.read())
        writer.close()
        target.close()

    async with serving({"/": _answer}) as url:
        server = await asyncio.start_server(forward, other_address())
        async with server:
            address, port = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(address, port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = await reader.read()
            writer.close()
    assert answer.endswith(b"True")


async def test_browsers_of_other_users_are_not() -> None:
    if os.getuid() != 0:
        requires.missing("only root can start a process of another user")
    curl = requires.program("curl")
    async with serving({"/": _answer}) as url:
        process = await asyncio.create_subprocess_exec(
            curl, "--silent", url, stdout=subprocess.PIPE, user=_NOBODY
        )
        answer, _ = await process.communicate()
    assert answer == b"False"
