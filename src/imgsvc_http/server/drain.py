"""Requests that are worked on, and are given up where the service cannot wait for them any longer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from imgsvc_http.answering.refusals import shutting_down


class Running:
    """The requests that are worked on, also those whose clients have gone."""

    def __init__(self) -> None:
        self._requests: dict[asyncio.Timeout, web.Request] = {}

    def __len__(self) -> int:
        return len(self._requests)

    @contextlib.asynccontextmanager
    async def one(self, request: web.Request) -> AsyncIterator[None]:
        """Around the work on a request.

        Raises a `Refusal` where it is given up, once the work has ended.
        """
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
            raise shutting_down() from None

    def give_up(self) -> None:
        """Cancel the work on all requests that can still be told so, and read no more of their bodies."""
        for end, request in self._requests.items():
            if request.writer.output_size == 0:
                if not request.content.is_eof():
                    request.content.set_exception(shutting_down())
                end.reschedule(asyncio.get_running_loop().time())
