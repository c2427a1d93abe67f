"""Work that ends although its caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from imgsvc_http.runtime.completion import run_or_undo

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("cancels", [0, 1, 3])
async def test_a_caller_that_is_cancelled_waits_and_undoes_what_was_done(cancels: int, fails: bool) -> None:
    goes_on, undone = asyncio.Event(), list[str]()

    async def work() -> str:
        await goes_on.wait()
        if fails:
            raise ZeroDivisionError
        return "done"

    async def undo(result: str) -> None:
        await asyncio.sleep(0)
        undone.append(result)

    calling = asyncio.create_task(run_or_undo(work(), undo))
    for _ in range(cancels):
        await asyncio.sleep(0)
        calling.cancel()
    await asyncio.sleep(0)
    assert not calling.done()
    goes_on.set()
    (outcome,) = await asyncio.gather(calling, return_exceptions=True)
    if cancels:
        assert isinstance(outcome, asyncio.CancelledError)
        assert undone == ([] if fails else ["done"])
    else:
        assert isinstance(outcome, ZeroDivisionError) if fails else outcome == "done"
        assert undone == []
