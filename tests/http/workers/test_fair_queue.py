"""Fair turns: by the work that accounts have had, never by how many requests they send."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from itertools import groupby

import attrs
import pytest

from imgsvc_http.workers.fair_queue import FairQueue, QueueFull

pytestmark = pytest.mark.asyncio


@attrs.define
class Clock:
    """A clock that stands still between the requests of a test."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def holding(queue: FairQueue, *names: str, background: bool = False) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for name in names:
            slot = queue.slot(name, background=background)
            await slot.take()
            stack.callback(slot.give_back)
        yield


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def line(
    queue: FairQueue, clock: Clock, served: list[str], costs: dict[str, float], background: bool = False
):
    async def request(name: str) -> None:
        async with holding(queue, name, background=background):
            clock.now += costs[name]
            served.append(name)
            await asyncio.sleep(0)

    return request


async def test_patient_requests_may_have_more_slots_than_others() -> None:
    """Those of webhooks, which all processes work on in one."""
    queue = FairQueue(1, extra=0, patient=3, room=100, seconds=10)
    patient = [queue.slot("account", background=True) for _ in range(4)]
    taking = [asyncio.create_task(slot.take()) for slot in patient]
    await settle()
    assert [task.done() for task in taking] == [True, True, True, False]
    other = asyncio.create_task(queue.slot("other").take())
    await settle()
    assert not other.done()
    patient[0].give_back()
    await settle()
    assert taking[3].done()
    for task in (*taking, other):
        task.cancel()


async def test_an_account_that_is_alone_gets_each_slot_that_becomes_free() -> None:
    queue = FairQueue(2, extra=1, room=10, seconds=10)
    slots = [queue.slot("alone") for _ in range(3)]
    taking = [asyncio.create_task(slot.take()) for slot in slots]
    await settle()
    assert [task.done() for task in taking] == [True, True, False]
    slots[0].give_back()
    await settle()
    assert taking[2].done()


async def test_an_account_of_which_one_request_has_ended_gets_no_extra_slot_for_the_others() -> None:
    queue = FairQueue(2, extra=1, room=10, seconds=60)
    first, second = queue.slot("long"), queue.slot("long")
    await first.take()
    await second.take()
    first.give_back()
    async with holding(queue, "other"):
        third = asyncio.create_task(queue.slot("long").take())
        await settle()
        assert not third.done()
        third.cancel()


async def test_accounts_take_turns_however_many_requests_one_of_them_sends() -> None:
    clock, served = Clock(), []
    queue = FairQueue(1, extra=0, room=100, seconds=10, clock=clock)
    request = line(queue, clock, served, {"many": 1.0, "few": 1.0})
    async with holding(queue, "other"):
        tasks = [asyncio.create_task(request("many")) for _ in range(20)]
        await settle()
        tasks += [asyncio.create_task(request("few")) for _ in range(3)]
        await settle()
    await asyncio.gather(*tasks)
    assert served.index("few") <= 1
    assert [name for name in served[:7] if name == "few"] == ["few"] * 3


async def test_turns_are_shared_by_the_time_that_work_takes() -> None:
    clock, served = Clock(), []
    queue = FairQueue(1, extra=0, room=100, seconds=1000, clock=clock)
    request = line(queue, clock, served, {"heavy": 10.0, "light": 1.0})
    async with holding(queue, "other"):
        tasks = [asyncio.create_task(request(name)) for name in ["heavy"] * 5 + ["light"] * 30]
        await settle()
    await asyncio.gather(*tasks)
    longest_heavy = max(len(list(run)) for name, run in groupby(served[:25]) if name == "heavy")
    assert longest_heavy == 1
    assert 2 <= served[:25].count("heavy") <= 4


async def test_a_new_account_begins_beside_the_least_served_one() -> None:
    clock, served = Clock(), []
    queue = FairQueue(1, extra=0, room=100, seconds=1000, clock=clock)
    request = line(queue, clock, served, {"heavy": 10.0, "light": 1.0, "new": 1.0})
    async with holding(queue, "other"):
        tasks = [asyncio.create_task(request(name)) for name in ["heavy"] * 3 + ["light"] * 20]
        await settle()
    while len(served) < 4:
        await asyncio.sleep(0)
    tasks.append(asyncio.create_task(request("new")))
    await asyncio.gather(*tasks)
    assert served.index("new") <= 7


async def test_idling_saves_up_no_turns() -> None:
    clock, served = Clock(), []
    queue = FairQueue(1, extra=0, room=100, seconds=1000, clock=clock)
    request = line(queue, clock, served, {"busy": 1.0, "late": 1.0})
    busy = [asyncio.create_task(request("busy")) for _ in range(10)]
    while len(served) < 5:
        await asyncio.sleep(0)
    late = [asyncio.create_task(request("late")) for _ in range(5)]
    await asyncio.gather(*busy, *late)
    assert served[5:] != ["late"] * 5 + ["busy"] * 5
    assert max(len(list(run)) for _, run in groupby(served[6:])) <= 2


async def test_an_account_of_which_nothing_runs_gets_an_extra_slot() -> None:
    queue = FairQueue(2, extra=1, room=10, seconds=60)
    async with holding(queue, "long", "long"):
        waiting = asyncio.create_task(holding(queue, "long").__aenter__())
        await settle()
        assert queue.running == 2
        async with asyncio.timeout(60), holding(queue, "short"):
            assert queue.running == 3
            second = asyncio.create_task(holding(queue, "third").__aenter__())
            await settle()
            assert queue.waiting() == 2
        await asyncio.wait_for(second, 60)
        waiting.cancel()


async def test_a_background_request_waits_in_its_own_line_and_takes_no_extra_slot() -> None:
    queue = FairQueue(1, extra=1, room=1, seconds=60)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(holding(queue, "a"))
        background = [asyncio.create_task(queue.slot("b", background=True).take()) for _ in range(5)]
        await settle()
        assert (queue.running, queue.waiting()) == (1, 0)
        async with asyncio.timeout(60):
            await stack.enter_async_context(holding(queue, "b"))
    await settle()
    assert background[0].done()
    for task in background:
        task.cancel()


async def test_who_fills_the_queue_loses_the_newest_request() -> None:
    queue = FairQueue(1, extra=0, room=4, seconds=60)
    async with holding(queue, "other"):
        tasks = [asyncio.create_task(queue.slot("greedy").take()) for _ in range(4)]
        await settle()
        with pytest.raises(QueueFull):
            queue.check_room("greedy")
        with pytest.raises(QueueFull):
            await queue.slot("greedy").take()
        queue.check_room("modest")
        modest = asyncio.create_task(queue.slot("modest").take())
        await settle()
        assert [task.done() for task in tasks] == [False, False, False, True]
        with pytest.raises(QueueFull):
            await tasks[3]
        assert not modest.done()
        assert queue.waiting() == 4
        for task in (*tasks, modest):
            task.cancel()
        await asyncio.gather(*tasks, modest, return_exceptions=True)
        assert queue.waiting() == 0


async def test_waiting_ends_with_the_time_for_it() -> None:
    queue = FairQueue(1, extra=0, room=4, seconds=0.01)
    async with holding(queue, "other"):
        with pytest.raises(QueueFull):
            await queue.slot("late").take()
        assert queue.waiting() == 0


async def test_cancelling_gives_turn_and_place_back() -> None:
    queue = FairQueue(1, extra=0, room=4, seconds=60)
    async with holding(queue, "other"):
        first = asyncio.create_task(queue.slot("a").take())
        await settle()
        first.cancel()
        await settle()
        assert queue.waiting() == 0
    assert queue.running == 0

    async with holding(queue, "other"):
        granted = asyncio.create_task(queue.slot("a").take())
        await settle()
    granted.cancel()  # granted in this turn of the loop, and not yet seen by its task
    await settle()
    assert queue.running == 0
    async with asyncio.timeout(60), holding(queue, "b"):
        pass


async def test_the_queue_tells_when_it_stands_still() -> None:
    clock = Clock()
    queue = FairQueue(1, extra=0, room=4, seconds=10, clock=clock)
    assert not queue.stands_still
    async with holding(queue, "a"):
        clock.now = 100.0
        assert not queue.stands_still
        waiting = asyncio.create_task(queue.slot("b").take())
        await settle()
        assert not queue.stands_still
        clock.now = 104.0
        assert queue.oldest_seconds() == 4.0
        assert not queue.stands_still
        clock.now = 106.0
        assert queue.stands_still
        waiting.cancel()
        await settle()
        assert not queue.stands_still


async def test_a_turn_costs_the_same_however_many_accounts_wait() -> None:
    async def seconds(accounts: int, turns: int = 2000) -> float:
        queue = FairQueue(2, extra=2, room=10_000, seconds=60)
        left = iter(range(turns))

        async def client(name: str) -> None:
            for _ in left:
                async with holding(queue, name):
                    await asyncio.sleep(0)

        began = time.process_time()
        await asyncio.gather(*(client(f"{number % accounts}") for number in range(1000)))
        return time.process_time() - began

    few = min([await seconds(4) for _ in range(3)])
    assert min([await seconds(1000) for _ in range(3)]) < 5 * few
