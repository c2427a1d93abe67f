"""How many requests of one client run while another one is served."""

from __future__ import annotations

import asyncio

import pytest

from imgsvc_http.gate.pacing import RequestPacing

pytestmark = pytest.mark.asyncio

MANY, STEPS = 60, 40


async def test_few_requests_of_a_client_begin_while_another_one_is_served() -> None:
    pacing, begun = RequestPacing(), 0
    async with pacing.begun("modest"):

        async def request() -> None:
            nonlocal begun
            async with pacing.begun("greedy"):
                begun += 1

        requests = [asyncio.create_task(request()) for _ in range(MANY)]
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert 0 < begun <= STEPS / 8
        async with asyncio.timeout(60):
            await asyncio.gather(*requests)
    assert begun == MANY


async def test_a_client_that_is_alone_is_not_held_back() -> None:
    pacing = RequestPacing()
    for _ in range(2):
        async with pacing.begun("alone"), pacing.begun("alone"):
            pass
    begun = 0

    async def request() -> None:
        nonlocal begun
        async with pacing.begun("alone"):
            begun += 1

    requests = [asyncio.create_task(request()) for _ in range(MANY)]
    await asyncio.sleep(0)
    assert begun == MANY
    await asyncio.gather(*requests)


async def test_quick_requests_of_a_client_take_turns_while_another_one_is_served() -> None:
    pacing, answered = RequestPacing(), 0

    async def quick() -> None:
        nonlocal answered
        await pacing.wait("greedy")
        answered += 1

    async with pacing.begun("greedy"):
        await quick()
        assert answered == 1  # at once, as no other client is served
    async with pacing.begun("modest"):
        requests = [asyncio.create_task(quick()) for _ in range(MANY)]
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert STEPS / 4 < answered <= STEPS + 1
        await asyncio.gather(*requests)
    assert answered == MANY + 1


async def test_a_request_that_is_cancelled_while_it_waits_holds_back_no_other() -> None:
    pacing = RequestPacing()

    async def request() -> None:
        async with pacing.begun("greedy"):
            pass

    async with pacing.begun("modest"):
        requests = [asyncio.create_task(request()) for _ in range(3)]
        await asyncio.sleep(0)
        requests[0].cancel()
        requests[1].cancel()
        async with asyncio.timeout(60):
            await requests[2]
    await asyncio.gather(*requests, return_exceptions=True)
