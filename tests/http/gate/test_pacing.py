"""How many requests of one client run while another one is served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from imgsvc_http.gate.admission import Access, admit
from imgsvc_http.gate.authentication import Principal
from imgsvc_http.gate.pacing import RequestPacing
from imgsvc_http.gate.rate_limit import RateKind, RateLimiter, Rates
from imgsvc_http.runtime.shares import Shares
from imgsvc_http.settings import Settings

pytestmark = pytest.mark.asyncio

MANY, STEPS = 60, 40


@contextlib.asynccontextmanager
async def begun(pacing: RequestPacing, name: str) -> AsyncIterator[None]:
    await pacing.begin(name)
    try:
        yield
    finally:
        pacing.end(name)


async def test_few_requests_of_a_client_begin_while_another_one_is_served() -> None:
    pacing, count = RequestPacing(), 0
    async with begun(pacing, "modest"):

        async def request() -> None:
            nonlocal count
            async with begun(pacing, "greedy"):
                count += 1

        requests = [asyncio.create_task(request()) for _ in range(MANY)]
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert 0 < count <= STEPS / 8
        async with asyncio.timeout(60):
            await asyncio.gather(*requests)
    assert count == MANY


async def test_a_client_that_is_alone_is_not_held_back() -> None:
    pacing = RequestPacing()
    for _ in range(2):
        async with begun(pacing, "alone"), begun(pacing, "alone"):
            pass
    count = 0

    async def request() -> None:
        nonlocal count
        async with begun(pacing, "alone"):
            count += 1

    requests = [asyncio.create_task(request()) for _ in range(MANY)]
    await asyncio.sleep(0)
    assert count == MANY
    await asyncio.gather(*requests)


async def test_quick_requests_of_a_client_take_turns_while_another_one_is_served() -> None:
    pacing, answered = RequestPacing(), 0

    async def quick() -> None:
        nonlocal answered
        await pacing.wait("greedy")
        answered += 1

    async with begun(pacing, "greedy"):
        await quick()
        assert answered == 1  # at once, as no other client is served
    async with begun(pacing, "modest"):
        requests = [asyncio.create_task(quick()) for _ in range(MANY)]
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert STEPS / 4 < answered <= STEPS + 1
        await asyncio.gather(*requests)
    assert answered == MANY + 1


async def test_a_request_that_is_cancelled_while_it_waits_holds_back_no_other() -> None:
    pacing = RequestPacing()

    async def request() -> None:
        async with begun(pacing, "greedy"):
            pass

    async with begun(pacing, "modest"):
        requests = [asyncio.create_task(request()) for _ in range(3)]
        await asyncio.sleep(0)
        requests[0].cancel()
        requests[1].cancel()
        async with asyncio.timeout(60):
            await requests[2]
    await asyncio.gather(*requests, return_exceptions=True)


@pytest.mark.parametrize(
    ("kind", "client"), [("requests", "account"), ("results", "account"), ("pictures", "2001:db8:1:2::/64")]
)
async def test_an_account_shares_with_others_and_so_does_who_asks_for_pictures_by_url(
    kind: RateKind, client: str
) -> None:
    """The account that pays for pictures does not choose who asks for them."""

    async def authenticate(call: Any) -> Principal:
        return Principal("account", "key", frozenset())

    limiter = RateLimiter(5, 60)
    services = SimpleNamespace(
        settings=Settings(),
        rates=Rates(requests=limiter, pictures=limiter, misses=limiter, not_counted=()),
        pacing=RequestPacing(),
        connections=Shares(4),
    )
    request = make_mocked_request("GET", "/")
    call: Any = SimpleNamespace(
        services=services, request=request, client="2001:db8:1:2::5", secure=True, known=None
    )
    ticket = await admit(call, Access(rate=kind, authenticate=authenticate))
    assert ticket.client == client
    for _ in range(2):
        assert services.connections.take("another")
    assert not services.connections.take(client)
    ticket.close()
    assert services.connections.take(client)
