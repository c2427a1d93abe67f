"""Calls of a resource that hangs: they time out, and do not affect others."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from imgsvc_http.runtime.bulkhead import Bulkhead, CallTimedOut

pytestmark = pytest.mark.asyncio


async def test_a_silent_place_takes_few_threads_and_none_of_others() -> None:
    calls, answer, threads, broken = Bulkhead(0.5), threading.Event(), set[int](), list[object]()

    def hang() -> None:
        threads.add(threading.get_ident())
        answer.wait()

    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    running = [asyncio.create_task(calls.call(hang)) for _ in range(100)]
    assert await asyncio.to_thread(lambda: "others go on") == "others go on"
    outcomes = await asyncio.gather(*running, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {CallTimedOut}
    assert 2 <= len(threads) <= 40
    with pytest.raises(CallTimedOut, match=r"within 0\.5 seconds"):
        await calls.call(lambda: "there is no room yet")
    answer.set()
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(CallTimedOut):  # while the threads come to their ends
                assert await calls.call(lambda: "room again") == "room again"
                break
    assert not broken  # by answers that nobody waits for any more


async def test_a_call_that_is_cancelled_as_it_gets_a_thread_hands_it_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, calls, answer = asyncio.get_running_loop(), Bulkhead(60, threads=1), threading.Event()
    first = asyncio.create_task(calls.call(answer.wait))
    await asyncio.sleep(0)
    second = asyncio.create_task(calls.call(answer.wait))
    await asyncio.sleep(0)
    call_soon = loop.call_soon_threadsafe

    def cancel_second_afterwards(report: Callable[..., object], *args: Any) -> asyncio.Handle:
        return call_soon(lambda: (report(*args), second.cancel()))

    with monkeypatch.context() as patched:
        patched.setattr(loop, "call_soon_threadsafe", cancel_second_afterwards)
        answer.set()
        await first
    with pytest.raises(asyncio.CancelledError):
        await second
    async with asyncio.timeout(60):
        assert await calls.call(lambda: "there is a thread") == "there is a thread"


async def test_what_a_call_raises_is_raised() -> None:
    def fail() -> None:
        raise TimeoutError("of the place's own")

    with pytest.raises(TimeoutError, match="of the place's own"):
        await Bulkhead(5).call(fail)


async def test_a_call_that_never_ends_keeps_no_process() -> None:
    script = """
import asyncio, threading
from imgsvc_http.runtime.bulkhead import Bulkhead, CallTimedOut
try:
    asyncio.run(Bulkhead(0.1).call(threading.Event().wait))
except CallTimedOut:
    print("given up")
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], capture_output=True, timeout=120, check=True
    )
    assert done.stdout == b"given up\n"
