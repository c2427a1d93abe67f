"""`DELETE /1.0/cache`."""

from __future__ import annotations

import json

import aiohttp
import pytest

from tests.http.calls import assert_failure, call
from tests.http.service_process import Service

pytestmark = pytest.mark.asyncio


async def test_purging_needs_a_source_and_a_scope(service: Service, client: aiohttp.ClientSession) -> None:
    assert_failure(await call(client, "DELETE", "/1.0/cache"), 422, "invalid_parameter", "'url'")
    reply = await call(client, "DELETE", "/1.0/cache?url=https%3A%2F%2Fexample.org%2Fshoe.jpg")
    assert (reply.status, reply.json["purged"]) == (200, 0)
    account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    made = json.loads(service.imgsvc("keys", "create", account, "--scope", "process", "--json"))
    async with service.client(key=made["secret"]) as other:
        refused = await call(other, "DELETE", "/1.0/cache?url=x")
        assert_failure(refused, 403, "insufficient_scope", "account")
