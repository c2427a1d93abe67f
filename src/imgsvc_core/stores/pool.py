"""Sessions that are kept open, one for each set of credentials."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any

from imgsvc_core.spec.declare import params
from imgsvc_core.stores.declarations import StoreSpec
from imgsvc_core.stores.failures import guarded, not_opened
from imgsvc_core.stores.objects import StoredObject, object_name
from imgsvc_core.stores.policy import SECONDS, persistently
from imgsvc_core.stores.sessions import Access, Keyfile, Session, connect
from imgsvc_core.stores.sharing import Shared


class StorePool:
    """Sessions for stores: at most ``sessions`` idle ones are kept, the longest unused is closed first.

    A pool belongs to one event loop. ``endpoints`` replace addresses of providers; see `Access`.
    """

    def __init__(self, *, sessions: int = 64, endpoints: Mapping[str, str] | None = None) -> None:
        self._bound = sessions
        self._endpoints = dict(endpoints or {})
        self._entries: OrderedDict[tuple[Any, ...], _Entry] = OrderedDict()
        self._gate = asyncio.Lock()

    async def put(
        self,
        spec: StoreSpec,
        item: StoredObject,
        *,
        keyfile: Keyfile | None = None,
        seconds: float = SECONDS,
    ) -> str:
        """Store an object; its public URL.

        Raises:
            StoreRefused, StoreUnavailable: the store does not take it.
            SourceUnreachable: the object is a file that cannot be read.
            MissingDependency: the packages for the provider are not installed.
        """
        access = Access(spec, keyfile, self._endpoints, self._turn)
        name, data = object_name(spec, item.name), await item.read()

        async def attempt() -> str:
            async with self._session(access) as session:
                await self._turn()
                return await session.write(spec, name, data, item.content_type)

        return await persistently(attempt, spec, seconds=seconds)

    @property
    def idle(self) -> int:
        """How many sessions are open and not in use."""
        return sum(not entry.users for entry in self._entries.values())

    @contextlib.asynccontextmanager
    async def _session(self, access: Access) -> AsyncIterator[Session]:
        key = _key(access)
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        entry.users += 1
        try:
            yield entry.session or await entry.opening.outcome(functools.partial(entry.open, access))
        finally:
            entry.users -= 1
            if entry.session is None and not entry.users and self._entries.get(key) is entry:
                del self._entries[key]
            await self._shrink()

    async def _turn(self) -> None:
        """Let one begin in each round of the event loop: to sign or connect many at once would stall it."""
        async with self._gate:
            await asyncio.sleep(0)

    async def _shrink(self) -> None:
        idle = [key for key, entry in self._entries.items() if not entry.users]
        for entry in [self._entries.pop(key) for key in idle[: max(0, len(idle) - self._bound)]]:
            await entry.close()

    async def close(self) -> None:
        """Close all sessions; those in use are closed by the last write that uses them."""
        self._bound = 0
        await self._shrink()

    async def __aenter__(self) -> StorePool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class _Entry:
    """A session and how many writes use it."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.users = 0
        self.opening: Shared[Session] = Shared()

    async def open(self, access: Access) -> Session:
        self.session = await guarded(access.spec, connect(access), not_opened)
        return self.session

    async def close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close()


def _key(access: Access) -> tuple[Any, ...]:
    """What two accesses have in common that can share a session."""
    declared = params(type(access.spec))
    values = [getattr(access.spec, declared[name].attribute) for name in access.spec.session]
    keyfile = (
        json.dumps(dict(access.keyfile), sort_keys=True, default=repr) if access.keyfile is not None else None
    )
    return access.spec.provider, keyfile, *values
