"""A pool of open sessions, one for each set of credentials."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from imgsvc_core.spec.declare import params
from imgsvc_core.spec.store.declarations import StoreSpec
from imgsvc_stores.access import Access, Keyfile, Session
from imgsvc_stores.failures import not_opened, translating
from imgsvc_stores.objects import StoredObject, object_name
from imgsvc_stores.retry import SECONDS, retry
from imgsvc_stores.sessions import connect
from imgsvc_stores.single_flight import SingleFlight


class StorePool:
    """Sessions for stores. At most ``sessions`` idle ones stay open; the least recently used is closed first.

    A pool belongs to one event loop. ``endpoints`` replace addresses of providers; see `Access`.
    ``public_urls`` are the addresses by which the buckets of providers are read, such as that of a CDN.
    """

    def __init__(
        self,
        *,
        sessions: int = 64,
        endpoints: Mapping[str, str] | None = None,
        public_urls: Mapping[str, str] | None = None,
    ) -> None:
        self._bound = sessions
        self._public_urls = dict(public_urls or {})
        self._endpoints = dict(endpoints or {})
        self._entries: OrderedDict[tuple[Any, ...], _SharedSession] = OrderedDict()
        self._gate = asyncio.Lock()

    async def put(
        self, spec: StoreSpec, item: StoredObject, *, keyfile: Keyfile | None = None, seconds: float = SECONDS
    ) -> str:
        """Write an object, and return its public URL.

        Raises:
            StoreRefused, StoreUnavailable: the store did not take it.
            SourceUnreachable: the object is a file that cannot be read.
            MissingDependency: the packages for the provider are not installed.
        """
        access = Access(spec, keyfile, self._endpoints, self._pace)
        name, data = object_name(spec, item.name), await item.read()

        async def attempt() -> str:
            async with self._session(access) as session:
                await self._pace()
                return await session.write(spec, name, data, item.content_type)

        url = await retry(attempt, spec, seconds=seconds)
        public = self._public_urls.get(spec.provider)
        return url if public is None else f"{public.rstrip('/')}/{quote(name, safe='/~')}"

    @property
    def idle(self) -> int:
        """Return the number of sessions that are open and not in use."""
        return sum(not entry.users for entry in self._entries.values())

    @contextlib.asynccontextmanager
    async def _session(self, access: Access) -> AsyncIterator[Session]:
        key = _key(access)
        entry = self._entries.setdefault(key, _SharedSession())
        self._entries.move_to_end(key)
        entry.users += 1
        try:
            yield entry.session or await entry.opening.get("", functools.partial(entry.open, access))
        finally:
            entry.users -= 1
            if entry.session is None and not entry.users and self._entries.get(key) is entry:
                del self._entries[key]
            await self._shrink()

    async def _pace(self) -> None:
        """Let one caller continue in each round of the event loop. Many at once would block it."""
        async with self._gate:
            await asyncio.sleep(0)

    async def _shrink(self) -> None:
        idle = [key for key, entry in self._entries.items() if not entry.users]
        for entry in [self._entries.pop(key) for key in idle[: max(0, len(idle) - self._bound)]]:
            await entry.close()

    async def close(self) -> None:
        """Close all sessions. A session in use is closed after its last write."""
        self._bound = 0
        await self._shrink()

    async def __aenter__(self) -> StorePool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _SharedSession:
    """A session, and the number of writes that use it."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.users = 0
        self.opening: SingleFlight[str, Session] = SingleFlight(ends_alone=True)

    async def open(self, access: Access) -> Session:
        self.session = await translating(access.spec, connect(access), not_opened)
        return self.session

    async def close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close()


def _key(access: Access) -> tuple[Any, ...]:
    """Return a key that is equal for accesses which can share a session."""
    declared = params(type(access.spec))
    values = [getattr(access.spec, declared[name].attribute) for name in access.spec.session]
    keyfile = (
        json.dumps(dict(access.keyfile), sort_keys=True, default=repr) if access.keyfile is not None else None
    )
    return access.spec.provider, keyfile, *values
