"""Requests in flight, which are given up when the service can wait for them no longer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import attrs
from aiohttp import web

from imgsvc_http.answering.errors import Refusal, refusal


class InFlight:
    """The requests that are handled, including those whose clients have gone."""

    def __init__(self) -> None:
        self._requests: dict[asyncio.Timeout, web.Request] = {}

    def __len__(self) -> int:
        return len(self._requests)

    @contextlib.asynccontextmanager
    async def track(self, request: web.Request) -> AsyncIterator[None]:
        """Track a request during the block; raise `Refusal` at its end if the request was given up."""
        end = asyncio.timeout(None)
        try:
            async with end:
                self._requests[end] = request
                try:
                    yield
                finally:
                    del self._requests[end]
        except TimeoutError:
            if not end.expired():
                raise
            raise _shutting_down() from None

    def give_up(self) -> None:
        """Cancel all requests that are not being answered yet, and stop reading their bodies."""
        for end, request in self._requests.items():
            if request.writer.output_size == 0:
                if not request.content.is_eof():
                    request.content.set_exception(_shutting_down())
                end.reschedule(asyncio.get_running_loop().time())


def _shutting_down() -> Refusal:
    refused = refusal("not_ready", reason="it is shutting down")
    return attrs.evolve(refused, headers={**refused.headers, "Connection": "close"})
