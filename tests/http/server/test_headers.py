"""Headers that clients send twice, and those that the operator asks for."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from imgsvc_core.errors import SpecError
from imgsvc_http.settings import Settings
from tests.http.calls import assert_failure, call
from tests.http.service_process import running

pytestmark = pytest.mark.asyncio

HSTS = "max-age=31536000; includeSubDomains"


async def test_two_keys_are_refused_and_hsts_is_for_tls_only(tmp_path: Path) -> None:
    settings = {"server.strict_transport_security": HSTS, "server.trusted_proxies": "127.0.0.1"}
    with running(tmp_path / "state", settings) as service:
        key = ("Authorization", f"Bearer {service.key}")
        async with service.client(key="") as client:
            for path in ("/1.0/account", "/healthz"):
                reply = await call(client, "GET", path, headers=[key, key])
                assert_failure(reply, 400, "invalid_http", "more than one Authorization header")
                assert reply.headers["Strict-Transport-Security"] == HSTS
            reply = await call(client, "GET", "/1.0/account", headers=[key])
            assert (reply.status, reply.headers["Strict-Transport-Security"]) == (200, HSTS)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{service.port}") as plain:
            reply = await call(plain, "GET", "/healthz")
            assert "Strict-Transport-Security" not in reply.headers
            reply = await call(plain, "GET", "/healthz", headers={"X-Forwarded-Proto": "https"})
            assert (reply.status, reply.headers["Strict-Transport-Security"]) == (200, HSTS)


async def test_hsts_is_no_place_for_another_header() -> None:
    for value in ("31536000", "max-age=-1", "max-age=1\r\nX: y", "max-age=1; preload; includeSubDomains"):
        with pytest.raises(SpecError, match="must be max-age=SECONDS or empty"):
            Settings.load(None, {}, {"server.strict_transport_security": value})
