"""What all sections need: a client, a picture, and a web server to fetch from."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.http.service_process import Service
from tests.http.sources import serving
from tests.support import encoded


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def source() -> AsyncIterator[str]:
    """URL of a web server whose /<kind> is a picture of that kind."""

    async def picture(request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        if request.query.get("secret") and request.headers.get("Authorization") != "Basic dXNlcjpwYXNz":
            return web.Response(status=401)
        return web.Response(
            body=getattr(encoded, kind)().data, headers={"X-Agent": request.headers["User-Agent"]}
        )

    async with serving({"/{kind}": picture}) as url:
        yield url


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


@pytest.fixture
def photo() -> bytes:
    return encoded.jpeg().data
