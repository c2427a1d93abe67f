"""Whose browser a request comes from, if it comes from this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess

import aiohttp
import pytest
from aiohttp import web

from imgsvc_http.gate.local_peer import is_of_own_user
from tests.http.sources import serving
from tests.support import requires

pytestmark = pytest.mark.asyncio

_NOBODY = 65534


async def _answer(request: web.Request) -> web.Response:
    return web.Response(text=str(is_of_own_user(request)))


async def told(headers: dict[str, str]) -> str:
    async with (
        serving({"/": _answer}) as url,
        aiohttp.ClientSession() as client,
        client.get(url, headers=headers) as response,
    ):
        return await response.text()


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
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
    ],
)
async def test_pages_of_others_and_what_proxies_pass_on_are_not(headers: dict[str, str]) -> None:
    assert await told(headers) == "False"


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
