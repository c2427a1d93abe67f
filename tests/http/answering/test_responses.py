"""Answers as they are sent."""

from __future__ import annotations

import json
import random
from http import HTTPStatus

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from imgsvc_http.answering.bodies import BodiesUnderWay
from imgsvc_http.answering.headers import HeaderNames
from imgsvc_http.answering.responses import Response, picture

_MOST_HEADER_BYTES = 7_000


@pytest.mark.parametrize(("steps", "is_told"), [(10, True), (1000, False)])
def test_a_plan_that_is_too_long_for_a_header_is_left_out(steps: int, is_told: bool) -> None:
    facts = {"success": True, "code": 200, "plan": [{"phase": "resize"}] * steps, "output": {"width": 5}}
    names = HeaderNames("X-Svc")
    metadata = picture(json.dumps(facts), b"", "image/png", names).headers[names.metadata]
    assert len(metadata) <= _MOST_HEADER_BYTES
    told = json.loads(metadata)
    assert ("plan" in told) is is_told
    assert {**facts, "plan": None} == {**told, "plan": None}


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1, 1 << 18, (1 << 18) + 1, 1 << 19, 3_000_001])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_bodies_of_any_size_come_whole(method: str, size: int) -> None:
    body = random.Random(size).randbytes(size)
    headers = {"Content-Type": "image/png", "X-Content-Type-Options": "nosniff"}
    answer, bodies = Response(HTTPStatus.OK, headers, body), BodiesUnderWay(1 << 23)

    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(status=answer.status, headers=answer.headers, body=answer.payload(bodies))

    app = web.Application()
    app.router.add_route("*", "/", handle)
    async with TestClient(TestServer(app)) as client:
        for _ in range(2):  # an answer may be given again
            response = await client.request(method, "/")
            assert response.status == HTTPStatus.OK
            assert headers.items() <= dict(response.headers).items()
            assert response.headers["Content-Length"] == str(size)
            assert await response.read() == (b"" if method == "HEAD" else body)
    assert bodies.bytes == 0
