"""One call for all who ask for the same thing at the same time."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from imgsvc_stores.single_flight import SingleFlight

pytestmark = pytest.mark.asyncio


@attrs.define
class Calls:
    """Calls that wait until they may end."""

    may_end: asyncio.Event = attrs.field(factory=asyncio.Event)
    begun: int = 0
    ended: list[int] = attrs.field(factory=list)

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        self.ended.append(number)
        return number


async def test_callers_of_a_key_share_a_call_and_later_ones_begin_another() -> None:
    shared, call = SingleFlight[str, int](), Calls()
    asking = [asyncio.create_task(shared.get(key, call)) for key in ("a", "a", "b", "a")]
    await asyncio.sleep(0)
    call.may_end.set()
    assert await asyncio.gather(*asking) == [1, 1, 2, 1]
    assert await shared.get("a", call) == 3


@pytest.mark.parametrize("ends_alone", [False, True])
async def test_a_caller_that_leaves_does_not_end_the_call_of_the_others(ends_alone: bool) -> None:
    shared, call = SingleFlight[str, int](ends_alone=ends_alone), Calls()
    leaving, staying = (asyncio.create_task(shared.get("a", call)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    call.may_end.set()
    assert await staying == 1
    assert leaving.cancelled()


@pytest.mark.parametrize("ends_alone", [False, True])
async def test_a_call_without_callers_goes_on_unless_it_is_to_end(ends_alone: bool) -> None:
    shared, call = SingleFlight[str, int](ends_alone=ends_alone), Calls()
    leaving = [asyncio.create_task(shared.get("a", call)) for _ in range(2)]
    await asyncio.sleep(0)
    for caller in leaving:
        caller.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    asking = asyncio.create_task(shared.get("a", call))
    await asyncio.sleep(0)
    call.may_end.set()
    assert await asking == (2 if ends_alone else 1)
    assert call.ended == ([2] if ends_alone else [1])


async def test_all_callers_get_the_error_of_the_call() -> None:
    async def fail() -> int:
        raise OSError("gone")

    shared = SingleFlight[str, int]()
    found = await asyncio.gather(*(shared.get("a", fail) for _ in range(2)), return_exceptions=True)
    assert [str(error) for error in found] == ["gone", "gone"]
    assert found[0] is found[1]
