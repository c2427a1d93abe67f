"""A client's connection: how it ends, and what is answered to what is no HTTP."""

from __future__ import annotations

import asyncio
import logging
import uuid
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from imgsvc_http.answers import failure
from imgsvc_http.middleware import sign
from imgsvc_http.ratelimit import RateLimiter
from imgsvc_http.refusals import Refusal, shutting_down

_log = logging.getLogger(__name__)


class Connection(web.RequestHandler):
    """A connection that answers in the shape of all errors, also before there is a request."""

    __slots__ = ("_ending", "_limiter")

    def __init__(self, server: web.Server, limiter: RateLimiter) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), access_log=_log)
        self._limiter = limiter
        self._ending = False

    @property
    def idle(self) -> bool:
        """Whether it waits for a request."""
        return self._waiter is not None and not self._waiter.done()

    def finish(self) -> bool:
        """End with the answer to the request that runs, or at once where there is none; whether it has."""
        self._ending = True
        if self.idle:
            self.force_close()
        unsent = self.transport is not None and self.transport.get_write_buffer_size() > 0
        return self._force_close or (self._task_handler is None and not unsent)

    def give_up(self) -> None:
        """Answer that there is no time left to a request whose body is still coming in."""
        request = self._current_request
        if request is not None and not request.content.is_eof():
            request.content.set_exception(shutting_down())

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; it is the last one where the service ends."""
        if self._ending:
            resp.force_close()
        if request.content.exception() is not None:
            self._lingering_time = 0.0  # the rest of the body cannot be read
        return await super().finish_response(request, resp, start_time)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what the parser refuses; the connection ends with it."""
        if request.writer.output_size > 0:
            raise ConnectionError("An answer was begun already.")
        request_id = str(uuid.uuid4())
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _log.error("%s failed.", request_id, exc_info=exc)
            text = f"An unexpected error occurred. Report it with the id {request_id}."
            refusal = Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", text)
        else:
            _log.debug("%s is no valid HTTP: %s", request_id, exc)
            text = "The request must be valid HTTP/1.1: its first line, a header or its body cannot be read."
            refusal = Refusal(HTTPStatus(status), "invalid_http", text)
        answer = failure(refusal, request_id)
        response = _Counted(self._limiter, request_id, answer.status, answer.headers, answer.body)
        response.headers["Connection"] = "close"
        response.force_close()
        return response


class _Counted(web.Response):
    """An answer that counts as a request of its client's address, and says so."""

    def __init__(self, limiter: RateLimiter, request_id: str, status: int, headers: Any, body: bytes) -> None:
        super().__init__(status=status, headers=headers, body=body)
        self._limiter = limiter
        self._request_id = request_id

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        rate = await self._limiter.hit(f"address:{request.remote or ''}")
        sign(self, self._request_id, rate)
        return await super().prepare(request)
