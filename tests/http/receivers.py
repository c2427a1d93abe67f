"""Endpoints on loopback that webhooks are posted to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import attrs
from aiohttp import web

from tests.http.sources import serving


@attrs.frozen
class Post:
    """A notification as it arrived; the path with its query is as it was sent."""

    path: str
    headers: dict[str, str]
    body: bytes
    json: Any
    at: float


@attrs.define
class Receiver:
    """What has arrived; ``answers`` are given in turn by path, the last one for ever; 200 without any."""

    url: str = ""
    posts: list[Post] = attrs.field(factory=list)
    answers: dict[str, list[int | Callable[[web.Request], Awaitable[web.StreamResponse]]]] = attrs.field(
        factory=dict
    )

    async def arrived(self, count: int, seconds: float = 60) -> list[Post]:
        """The notifications, once there are so many."""
        async with asyncio.timeout(seconds):
            while len(self.posts) < count:
                await asyncio.sleep(0.01)
        return self.posts

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        moment = asyncio.get_running_loop().time()
        self.posts.append(Post(request.raw_path, dict(request.headers), body, await request.json(), moment))
        left = self.answers.get(request.path, [200])
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, int):
            return web.Response(status=answer, headers={"Location": "/elsewhere"})
        return await answer(request)


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with serving({"/{tail:.*}": receiver.handle}) as url:
        receiver.url = url
        yield receiver
