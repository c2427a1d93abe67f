"""Write to a store: from a coroutine by `Store`, from other code by `write`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from imgsvc_core.errors import invalid
from imgsvc_core.spec.store.declarations import StoreSpec
from imgsvc_core.spec.store.parsing import parse_store, shown_name
from imgsvc_stores.access import Keyfile
from imgsvc_stores.objects import StoredObject
from imgsvc_stores.pool import StorePool
from imgsvc_stores.retry import SECONDS

_CLEANING_SECONDS = 1.0
"""Time to undo an interrupted write."""


class Store:
    """One destination with its credentials."""

    def __init__(
        self, spec: StoreSpec, keyfile: Keyfile | None, pool: StorePool, *, owned: bool, seconds: float
    ) -> None:
        self.spec = spec
        self._keyfile = keyfile
        self._pool = pool
        self._owned = owned
        self._seconds = seconds

    async def put(self, item: StoredObject) -> str:
        """Write an object as a whole or not at all. Return its public URL.

        Raises:
            StoreRefused: the provider refused it; ``code`` is the provider's own.
            StoreUnavailable: the provider could not be reached, failed, or took too long.
            MissingDependency: the packages for the provider are not installed.
            SourceUnreachable: the object is a file that cannot be read.
        """
        return await self._pool.put(self.spec, item, keyfile=self._keyfile, seconds=self._seconds)

    async def close(self) -> None:
        """Close the connections, unless a pool owns them."""
        if self._owned:
            await self._pool.close()

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def open_store(
    spec: StoreSpec | Mapping[str, Any],
    *,
    keyfiles: Mapping[str, Keyfile] | None = None,
    endpoints: Mapping[str, str] | None = None,
    pool: StorePool | None = None,
    seconds: float = SECONDS,
) -> Store:
    """Return a store to write to. It connects at the first write.

    Args:
        spec: a `StoreSpec`, or its JSON object.
        keyfiles: uploaded keyfiles by id.
        endpoints: addresses that replace a provider's own, such as that of MinIO. With a pool, the pool's
            endpoints are used.
        pool: keeps sessions open for later writes.
        seconds: time limit of a write, all attempts together.

    Raises:
        SpecError: the spec is wrong, or its keyfile is unknown or not a JSON object.
    """
    spec = parse_store(spec)
    name: str | None = getattr(spec, "keyfile", None)
    keyfile = (keyfiles or {}).get(name) if name is not None else None
    if name is not None and keyfile is None:
        expected = "Store 'keyfile' parameter must be the id of an uploaded keyfile"
        raise invalid("store.keyfile", expected, f"got {shown_name(name)}")
    if keyfile is not None and not isinstance(keyfile, Mapping):
        message = f"Store 'keyfile' parameter must name a JSON object, and {shown_name(name)} names none"
        raise invalid("store.keyfile", message)
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
    """Write one object, and return its public URL. This also works while an event loop is running.

    An interrupt such as Ctrl-C cancels the write.

    Raises:
        ImgsvcError: as `open_store` and `Store.put` do.
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
    """Return a function that cancels the current task from another thread, and later its clean-up."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def cancel() -> None:
        task.cancel()
        loop.call_later(_CLEANING_SECONDS, task.cancel)

    def give_up() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(cancel)

    return give_up
