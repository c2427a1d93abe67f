"""Stores as they are used: from a coroutine, and from everywhere else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.jsontext import shown
from imgsvc_core.stores.declarations import StoreSpec
from imgsvc_core.stores.objects import StoredObject
from imgsvc_core.stores.parsing import parse_store, shy
from imgsvc_core.stores.policy import SECONDS
from imgsvc_core.stores.pool import StorePool
from imgsvc_core.stores.sessions import Keyfile

_CLEANING_SECONDS = 1.0
"""For what takes an interrupted write back."""


class Store:
    """One destination: where, with which credentials, and how objects are written there."""

    def __init__(
        self, spec: StoreSpec, keyfile: Keyfile | None, pool: StorePool, *, owned: bool, seconds: float
    ) -> None:
        self.spec = spec
        self._keyfile = keyfile
        self._pool = pool
        self._owned = owned
        self._seconds = seconds

    async def put(self, item: StoredObject) -> str:
        """Write an object; its public URL. It is there as a whole, or not at all.

        Raises:
            StoreRefused: the provider refuses it, with the provider's own code.
            StoreUnavailable: the provider cannot be reached, fails, or takes too long.
            MissingDependency: the packages for the provider are not installed.
            SourceUnreachable: the object is a file that cannot be read.
        """
        return await self._pool.put(self.spec, item, keyfile=self._keyfile, seconds=self._seconds)

    async def close(self) -> None:
        """Close the connections, unless they belong to a pool."""
        if self._owned:
            await self._pool.close()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def open_store(
    spec: StoreSpec | Mapping[str, Any],
    *,
    keyfiles: Mapping[str, Keyfile] | None = None,
    endpoints: Mapping[str, str] | None = None,
    pool: StorePool | None = None,
    seconds: float = SECONDS,
) -> Store:
    """A store to write to; nothing is connected yet.

    Args:
        spec: a declared store, or the JSON object of one.
        keyfiles: keyfiles by the ids that requests name them by.
        endpoints: addresses that replace a provider's own, for tests; with a pool, the pool's hold.
        pool: where sessions are kept for the next store.
        seconds: time for a write, all attempts together.

    Raises:
        SpecError: the spec is wrong, or its keyfile unknown or none.
    """
    spec = parse_store(spec)
    name: str | None = getattr(spec, "keyfile", None)
    keyfile = (keyfiles or {}).get(name) if name is not None else None
    if name is not None and keyfile is None:
        message = f"Store 'keyfile' parameter must be the id of an uploaded keyfile, got {shown(shy(name))}"
        raise SpecError([Problem("store.keyfile", message)])
    if keyfile is not None and not isinstance(keyfile, Mapping):
        message = f"Store 'keyfile' parameter must name a JSON object, and {shown(shy(name))} names none"
        raise SpecError([Problem("store.keyfile", message)])
    own = StorePool(sessions=1, endpoints=endpoints) if pool is None else pool
    return Store(spec, keyfile, own, owned=pool is None, seconds=seconds)


def write(
    spec: StoreSpec | Mapping[str, Any],
    data: bytes | Path,
    name: str,
    content_type: str,
    *,
    keyfiles: Mapping[str, Keyfile] | None = None,
    endpoints: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
) -> str:
    """Write one object and wait for it; its public URL. Also works where an event loop is running.

    Where the waiting is interrupted, as by Ctrl-C, the write is given up.

    Raises what `open_store` and `Store.put` raise.
    """
    store = open_store(spec, keyfiles=keyfiles, endpoints=endpoints, seconds=seconds)

    give_up: Future[Callable[[], None]] = Future()

    async def run() -> str:
        give_up.set_result(_cancellation())
        async with store:
            return await store.put(StoredObject(data, name, content_type))

    with ThreadPoolExecutor(1, thread_name_prefix="imgsvc-store") as thread:
        work = thread.submit(asyncio.run, run())
        try:
            return work.result()
        except BaseException:
            if not work.done():
                give_up.result()()
            raise


def _cancellation() -> Callable[[], None]:
    """What cancels the present task from another thread, and then what it does to clean up."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def cancel() -> None:
        task.cancel()
        loop.call_later(_CLEANING_SECONDS, task.cancel)

    def give_up() -> None:
        with contextlib.suppress(RuntimeError):  # it has come to its end meanwhile
            loop.call_soon_threadsafe(cancel)

    return give_up
