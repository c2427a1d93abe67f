"""Limits, and the version."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.http.calls import RATE_HEADERS, assert_failure, call, fetch, upload
from tests.http.receivers import receiving
from tests.http.service_process import Service, running
from tests.http.sources import serving
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(notifying_service: Service) -> Service:
    return notifying_service


@pytest_asyncio.fixture(loop_scope="module")
async def customer(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    """A client with an account of its own, of which nothing was asked yet."""
    key = service.new_key("Customer")
    async with service.client(key=key) as client:
        yield client


async def away_from_the_end_of_a_period(seconds: int) -> None:
    """Counts begin anew where a period ends; they are those of the clock."""
    left = seconds - time.time() % seconds
    if left < 30:
        await asyncio.sleep(left)


CALLS = (
    ("GET", "/1.0/account", 200),
    ("HEAD", "/1.0/account", 200),
    ("OPTIONS", "/1.0/account", 405),
    ("PUT", "/1.0/account", 405),
    ("PATCH", "/1.0/account", 405),
    ("DELETE", "/1.0/account", 405),
    ("POST", "/1.0/fetch", 415),
    ("POST", "/1.0/upload", 415),
    ("GET", "/1.0/watermarks", 200),
    ("POST", "/1.0/watermarks", 415),
    ("DELETE", "/1.0/watermarks/nothing", 404),
    ("GET", "/1.0/keyfiles", 200),
    ("POST", "/1.0/keyfiles", 415),
    ("DELETE", "/1.0/keyfiles/nothing", 404),
    ("GET", "/1.0/webhooks", 200),
    ("GET", "/1.0/webhooks/nothing", 404),
    ("GET", "/1.0/images/nothing", 404),
    ("GET", "/1.0/openapi.json", 200),
    ("GET", "/1.0/nothing", 404),
)


class TestLimits:
    async def test_all_methods_and_endpoints_count(
        self, customer: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Every request of a key takes one off, of whatever kind and whatever comes of it."""
        await away_from_the_end_of_a_period(900)
        reply = await upload(customer, photo)
        left = int(reply.headers["X-RateLimit-Remaining"])
        calls = (
            *CALLS,
            ("GET", reply.json["output"]["url"], 200),
            ("HEAD", reply.json["output"]["url"], 200),
        )
        for method, path, status in calls:
            reply = await call(customer, method, path)
            assert reply.status == status, f"{method} {path}"
            assert int(reply.headers["X-RateLimit-Remaining"]) == left - 1, f"{method} {path}"
            assert reply.headers.get("Cache-Control"), f"a cache may keep {method} {path} as long as it likes"
            left -= 1

    async def test_beyond_the_rate_everything_is_refused(self, tmp_path: Path, photo: bytes) -> None:
        """All methods and endpoints, pictures among them; the refusal tells when to come again."""
        await away_from_the_end_of_a_period(3600)
        with running(tmp_path / "state", {"rate.requests": 2, "rate.period_seconds": 3600}) as service:
            async with service.client() as client:
                reply = await upload(client, photo)
                picture = reply.json["output"]["url"]
                last = await call(client, "GET", picture)
                assert [each.headers["X-RateLimit-Remaining"] for each in (reply, last)] == ["1", "0"]
                assert (last.status, last.headers["X-RateLimit-Limit"]) == (200, "2")
                for method, path, _ in (*CALLS, ("GET", picture, 200), ("HEAD", picture, 200)):
                    reply = await call(client, method, path)
                    assert reply.status == 429, f"{method} {path}"
                    assert [reply.headers[name] for name in RATE_HEADERS[:2]] == ["2", "0"]
                    seconds = int(reply.headers["Retry-After"])
                    assert 0 <= int(reply.headers["X-RateLimit-Reset"]) - seconds <= 1
                    if method != "HEAD":
                        failure = assert_failure(reply, 429, "rate_limit_exceeded")
                        assert failure["message"] == f"Rate limit exceeded. Retry in {seconds} seconds."

    async def test_the_seconds_left_fall_until_the_next_period(self, tmp_path: Path) -> None:
        """X-RateLimit-Reset goes with the clock, and Retry-After leads just beyond the end of the period."""
        period = 9
        with running(tmp_path / "state", {"rate.requests": 3, "rate.period_seconds": period}) as service:
            async with service.client() as client:
                await asyncio.sleep(period - time.time() % period)  # periods begin with those of the clock
                ends_at = time.monotonic() + period - time.time() % period
                for name, status in (*[("X-RateLimit-Reset", 200)] * 3, ("Retry-After", 429)):
                    left_before = ends_at - time.monotonic()
                    reply = await call(client, "GET", "/1.0/account")
                    left = ends_at - time.monotonic()
                    assert reply.status == status
                    assert left - 0.1 <= int(reply.headers[name]) <= left_before + 1.1
                    await asyncio.sleep(1.1 if status == 200 else int(reply.headers["Retry-After"]))
                reply = await call(client, "GET", "/1.0/account")
                assert reply.status == 200
                assert int(reply.headers["X-RateLimit-Reset"]) > left

    async def test_each_key_has_its_own_rate(self, tmp_path: Path) -> None:
        """A key that is used up does not hold up another one, and binary failures tell it in the header."""
        await away_from_the_end_of_a_period(3600)
        with running(tmp_path / "state", {"rate.requests": 3, "rate.period_seconds": 3600}) as service:
            account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
            second = json.loads(service.imgsvc("keys", "create", account, "--json"))["secret"]
            async with service.client() as one, service.client(key=second) as other:
                for _ in range(3):
                    await call(one, "GET", "/1.0/account")
                refused = await upload(one, b"", headers={"X-Svc-Binary": "1"})
                assert (refused.status, refused.body, refused.metadata["code"]) == (429, b"", 429)
                assert int(refused.headers["Retry-After"]) >= 1
                assert (await call(other, "GET", "/1.0/account")).headers["X-RateLimit-Remaining"] == "2"

    async def test_the_default_rate(self, client: aiohttp.ClientSession) -> None:
        """100,000 requests in 15 minutes, told on every response."""
        headers = (await call(client, "GET", "/1.0/account")).headers
        assert headers["X-RateLimit-Limit"] == "100000"
        assert all(name in headers for name in RATE_HEADERS)

    async def test_a_watermark_is_no_larger_than_pictures_of_layers_may_be(
        self, client: aiohttp.ClientSession
    ) -> None:
        """10 MB."""
        picture = encoded.png_alpha().data
        for length, status in ((10_000_000, 201), (10_000_001, 413)):
            reply = await upload(client, picture.ljust(length, b"\0"), path="/1.0/watermarks")
            assert reply.status == status

    async def test_a_request_may_lower_limits_but_not_raise_them(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Limits of the service are the widest."""
        tight = await upload(client, photo, {"limits": {"source_pixels": 100}})
        assert_failure(tight, 422, "image_too_large", "at most 100")
        few = await upload(client, photo, {"limits": {"source_bytes": 10}})
        assert_failure(few, 413, "source_too_large")
        wide = await upload(client, photo, {"limits": {"output_side": 16_385, "frames": 500, "seconds": 30}})
        failure = assert_failure(wide, 422, "invalid_parameter", "integer within 1 to 16384 range")
        assert [error["path"] for error in failure["errors"]] == ["limits.output_side"]
        large = await upload(client, photo, {"resize": {"width": 20_000, "height": 1, "mode": "stretch"}})
        assert_failure(large, 422, "output_too_large", "16,384")
        wrong = await upload(client, photo, {"limits": {"frames": -1, "pages": 2}})
        failure = assert_failure(wrong, 422, "invalid_parameter")
        assert {error["path"] for error in failure["errors"]} == {"limits.frames", "limits.pages"}

    @pytest.mark.parametrize(
        ("delay", "status"), [(0, "delivered"), (1, "delivered"), (604_800, "scheduled")]
    )
    async def test_both_ends_of_the_range_of_webhook_delays(
        self, delay: int, status: str, customer: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """At once to a week after processing, the notification is sent."""
        async with receiving() as receiver:
            asked_at = asyncio.get_running_loop().time()
            request = {"webhook": {"url": f"{receiver.url}/", "delay": delay}}
            reply = await upload(customer, photo, request)
            assert (reply.status, set(reply.json)) == (202, {"success", "code", "id"})
            path, record = f"/1.0/webhooks/{reply.json['id']}", {"status": "created"}
            async with asyncio.timeout(60):
                while record["status"] != status:
                    await asyncio.sleep(0.05)
                    record = (await call(customer, "GET", path)).json["webhook"]
        expected = (200, 1) if status == "delivered" else (0, 0)
        assert (record["code"], len(receiver.posts)) == expected
        assert all(post.at - asked_at >= delay for post in receiver.posts)

    @pytest.mark.parametrize("delay", [-1, 604_801, 1.5, "1"])
    async def test_webhook_delays_outside_of_the_range(
        self, delay: Any, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A delay is a whole number of seconds, up to a week."""
        request = {"webhook": {"url": "https://example.org/", "delay": delay}}
        reply = await upload(client, photo, request)
        failure = assert_failure(reply, 422, "invalid_parameter")
        assert failure["message"] == "Webhook 'delay' parameter must be integer within 0 to 604800 range"

    async def test_the_range_of_the_limit_of_webhooks(self, client: aiohttp.ClientSession) -> None:
        """A list has 1 to 100 entries."""
        for limit in (1, 100):
            assert (await call(client, "GET", f"/1.0/webhooks?limit={limit}")).status == 200
        for limit in (0, 101):
            reply = await call(client, "GET", f"/1.0/webhooks?limit={limit}")
            message = "Webhooks 'limit' parameter must be integer within 1 to 100 range"
            assert_failure(reply, 422, "invalid_parameter", message)


class TestVersioning:
    async def test_the_version_is_in_every_path(self, client: aiohttp.ClientSession) -> None:
        """Every path of the interface begins with its version."""
        document = (await call(client, "GET", "/1.0/openapi.json")).json
        unversioned = [path for path in document["paths"] if not path.startswith("/1.0/")]
        assert unversioned == ["/healthz", "/readyz"]

    async def test_the_user_agent_carries_it(self, client: aiohttp.ClientSession) -> None:
        """Sources see which version fetches them."""
        seen: list[str] = []

        async def picture(request: web.Request) -> web.Response:
            seen.append(request.headers["User-Agent"])
            return web.Response(body=encoded.png().data)

        async with serving({"/p": picture}) as url:
            await fetch(client, f"{url}/p")
        assert seen == ["imgsvc/1.0"]
