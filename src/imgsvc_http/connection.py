"""What a client is told whose request is no HTTP that can be understood."""

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
from imgsvc_http.refusals import Refusal

_log = logging.getLogger(__name__)


class Connection(web.RequestHandler):
    """A connection that answers in the shape of all errors, also before there is a request."""

    __slots__ = ("_limiter",)

    def __init__(self, server: web.Server, limiter: RateLimiter) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), access_log=_log)
        self._limiter = limiter

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
