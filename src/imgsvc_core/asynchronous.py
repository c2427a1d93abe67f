"""`aprocess`: what `process` does, for programs that run an event loop, which goes on meanwhile.

No other module knows the event loop of a program. The one of `WorkerPool` is its own, in a thread.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import io
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar, Unpack, cast, overload
from weakref import WeakKeyDictionary

from imgsvc_core._runtime.daemon_threads import submit
from imgsvc_core._runtime.deadline import Deadline
from imgsvc_core._runtime.machine import machine
from imgsvc_core._runtime.workers import WorkerPool
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.formats.sink import write_all
from imgsvc_core.limits import Limits, limits_or
from imgsvc_core.pixels.watermarks import receive_pictures
from imgsvc_core.processing import ProcessOptions, parse_for, process_until
from imgsvc_core.sources.pixels import is_of_pillow, of_pillow
from imgsvc_core.sources.receiving import Source, received
from imgsvc_core.spec import Request, Spec
from imgsvc_core.targets.result import Result, encode, written
from imgsvc_core.targets.writing import Target, name_of, open_target, stamp_in_place, suffix_of

_T = TypeVar("_T")

_END_SECONDS = 0.5
"""Seconds to wait for the end of cancelled work in this process. An encoder may go on."""


class AsyncOptions(ProcessOptions, total=False):
    """The keyword arguments of `aprocess`, which explains them."""

    isolated: bool
    pool: WorkerPool | None


@overload
async def aprocess(
    source: Source, spec: Request | None = None, target: None = None, **options: Unpack[AsyncOptions]
) -> Result[bytes]: ...
@overload
async def aprocess(
    source: Source, spec: Request | None, target: Target, **options: Unpack[AsyncOptions]
) -> Result[None]: ...
@overload
async def aprocess(
    source: Source, spec: Request | None = None, *, target: Target, **options: Unpack[AsyncOptions]
) -> Result[None]: ...
async def aprocess(
    source: Source, spec: Request | None = None, target: Target | None = None, **options: Unpack[AsyncOptions]
) -> Result[Any]:
    """Process one image as `process` does, without blocking the event loop.

    Cancelling the call ends its work. The result is encoded already.

    Args:
        source: as in `process`. A file object is read in another thread.
        spec: as in `process`.
        target: as in `process`. A file object is written to in another thread.
        isolated: whether to work in another process, from a pool that all calls share; true by default. A
            crash then fails one call only, and cancelling stops any codec. The source is sent to that
            process, so it cannot be a pyvips image. Otherwise threads of this process work, at most one for
            each core. Some encoders and drawings cannot be stopped there: they run to their end.
        pool: a pool of your own for isolated work, such as one with a limit of memory. You close it.
        options: as in `process`. ``threads`` is 1 for isolated work unless you set it, because each process
            of the pool works on another image.

    Raises what `process` raises, and for isolated work:

    Raises:
        WorkerDied: the work crashed its process.
        TypeError: the source or a watermark cannot be sent to another process.
    """
    asked = parse_for(target, spec)
    isolated, pool = options.pop("isolated", True), options.pop("pool", None)
    usual = cast("ProcessOptions", options)
    if not isolated and pool is None:
        async with _turn():
            deadline = Deadline(_seconds(usual))
            return await _in_thread(deadline, partial(_encoded, deadline, source, asked, target, usual))
    deadline = Deadline(_seconds(usual))
    suffix = stamp = None
    if target is not None:
        suffix = suffix_of(target)
        stamp = await _in_thread(deadline, partial(stamp_in_place, source, target))
    begin = partial(_begin, deadline, pool, source, asked, suffix, usual)
    begun = await _in_thread(deadline, begin, on_cancel=_cancel_begun)
    made: tuple[Result[Any], bytes] = await asyncio.wrap_future(begun)
    if target is None:
        return made[0]
    return await _in_thread(deadline, partial(_write, *made, target, stamp))


def _seconds(options: ProcessOptions) -> float | None:
    return limits_or(options.get("limits"), Limits()).seconds


def _encoded(
    deadline: Deadline, source: Source, spec: Spec, target: Target | None, options: ProcessOptions
) -> Result[Any]:
    """Process an image and encode the result."""
    result = process_until(deadline, source, spec, target, **options)
    encode(result)
    return result


def _in_worker(
    source: Source, spec: Spec, suffix: str | None, options: ProcessOptions
) -> tuple[Result[Any], bytes]:
    """Return a result, and its bytes apart from it if they go into a file with a suffix.

    This process may be ended at any time, so its parent writes the file.
    """
    deadline = Deadline(_seconds(options))
    if suffix is None:
        return _encoded(deadline, source, spec, None, options), b""
    file = io.BytesIO()
    return process_until(deadline, source, spec, file, suffix=suffix, **options), file.getvalue()


def _write(result: Result[Any], data: bytes, target: Target, stamp: str | None) -> Result[None]:
    with open_target(target, result.media_type, stamp=stamp) as file:
        write_all(file, data)
    return written(result, name_of(target))


def _begin(
    deadline: Deadline,
    pool: WorkerPool | None,
    source: Source,
    spec: Spec,
    suffix: str | None,
    options: ProcessOptions,
) -> Future[tuple[Result[Any], bytes]]:
    """Send the work to a process, which takes time."""
    sent: ProcessOptions = {"threads": 1, **options}
    limits = limits_or(options.get("limits"), Limits())
    marks: dict[str, Source] = {}
    receive_pictures(marks, spec, options.get("watermarks"), limits, deadline)
    sent["watermarks"] = {id: _sendable(mark, limits) for id, mark in marks.items()}
    read = received(source, limits, deadline, name=options.get("name"))
    if isinstance(read, ByteSource):
        sent["name"] = read.name
    try:
        return (pool or _shared_pool()).submit(
            _in_worker,
            _sendable(read, limits),
            spec,
            suffix,
            sent,
            seconds=limits.seconds,
            grace=_END_SECONDS,
        )
    except TypeError as error:
        kinds = ", ".join(dict.fromkeys(type(one).__name__ for one in (source, *marks.values())))
        raise TypeError(
            f"Source and watermarks must be such that can be sent to a worker process, got {kinds}: give "
            "bytes, a path or an array, or set isolated=False."
        ) from error


def _sendable(source: Source, limits: Limits) -> Any:
    """Return bytes in the place of buffers and files that were read, and whole images of Pillow."""
    if isinstance(source, ByteSource):
        return source.read()
    if is_of_pillow(source):
        return of_pillow(source, limits)
    return bytes(source) if isinstance(source, memoryview) else source


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _turn() -> asyncio.Semaphore:
    """Return what lets as many calls of a loop work in threads at once as there are cores."""
    loop = asyncio.get_running_loop()
    if loop not in _turns:
        _turns[loop] = asyncio.Semaphore(machine().pool(None, None).workers)
    return _turns[loop]


async def _in_thread(
    deadline: Deadline, work: Callable[[], _T], *, on_cancel: Callable[[Future[_T]], object] | None = None
) -> _T:
    """Wait for work in a thread. Cancelling ends the work: it is no more than one that waits."""
    future = submit(work)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        deadline.interrupt()
        if on_cancel is not None:
            future.add_done_callback(on_cancel)
        await _ended(future)
        raise


async def _ended(future: Future[Any]) -> None:
    """Wait a little for interrupted work to end, however often the caller is cancelled meanwhile."""
    loop = asyncio.get_running_loop()
    ending = asyncio.wrap_future(future)
    ending.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody asks for its error
    end = loop.time() + _END_SECONDS
    while not ending.done() and (left := end - loop.time()) > 0:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([ending], timeout=left)


def _cancel_begun(begun: Future[Future[Any]]) -> None:
    """Cancel work that was sent to a process after its caller was cancelled."""
    if not begun.cancelled() and begun.exception() is None:
        begun.result().cancel()


_shared: WorkerPool | None = None
_beginning = threading.Lock()


def _shared_pool() -> WorkerPool:
    """Return the pool of this process, which begins with the first call."""
    global _shared
    with _beginning:
        if _shared is None:
            _shared = WorkerPool(modules=[__name__])
        return _shared


@atexit.register
def _end() -> None:
    if _shared is not None:
        _shared.stop()


def _begin_child() -> None:
    """Leave the pool to the parent. Its thread is not in a child process."""
    global _shared, _beginning
    _shared, _beginning = None, threading.Lock()


os.register_at_fork(after_in_child=_begin_child)
