"""A client's connection: how it ends, and what is answered to what is no HTTP."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import re
import termios
import uuid
from array import array
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import BadHttpMethod

from imgsvc_http.access.rate_limit import RateLimiter
from imgsvc_http.answering.answers import failure
from imgsvc_http.answering.refusals import Refusal, method_not_allowed, not_found
from imgsvc_http.middleware import sign

_log = logging.getLogger(__name__)
_PACE_SECONDS = 0.05
_FIRST_LINE = re.compile(r"b(['\"])(?P<method>[\w!#$%&'*+.^`|~-]+) (?P<path>/\S*) HTTP/1\.[01]\1", re.ASCII)


class Connection(web.RequestHandler):
    """A connection that answers in the shape of all errors, also before there is a request.

    Args:
        server: what handles its requests.
        limiter: counts what is no request.
        methods_at: gives the methods that are answered at a path.
        header_seconds: how long its first request may take to arrive, up to the body.
        idle_seconds: how long it waits for each further one.
        unread_seconds: how long a client may take nothing of an answer.
    """

    __slots__ = (
        "_ending", "_header_seconds", "_limiter", "_methods_at", "_seeing_out", "_unasked", "_unread",
        "_unread_seconds", "since",
    )  # fmt: skip

    def __init__(
        self,
        server: web.Server,
        limiter: RateLimiter,
        methods_at: Callable[[str], frozenset[str]],
        *,
        header_seconds: float,
        idle_seconds: float,
        unread_seconds: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            server,
            loop=loop,
            access_log=_log,
            keepalive_timeout=idle_seconds,
            auto_decompress=False,  # what is refused is never unpacked, the rest in steps
        )
        self._limiter = limiter
        self._methods_at = methods_at
        self._header_seconds = header_seconds
        self._unread_seconds = unread_seconds
        self._unasked: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._seeing_out: asyncio.Timeout | None = None
        self._ending = False
        self.since = loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._unasked = self._loop.call_later(self._header_seconds, self._drop_unasked)

    def connection_lost(self, exc: BaseException | None) -> None:
        for timer in (self._unasked, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
        super().resume_writing()

    @property
    def asked(self) -> bool:
        """Whether a request has come."""
        return self._request_count > 0

    @property
    def idle(self) -> bool:
        """Whether it waits for a request."""
        return self._waiter is not None and not self._waiter.done()

    def finish(self) -> bool:
        """End with the answer to the request that runs, or at once where there is none; whether it has."""
        self._ending = True
        if self.idle:
            self.force_close()
        if self._seeing_out is not None:
            self._seeing_out.reschedule(self._loop.time())
        unsent = self.transport is not None and self.transport.get_write_buffer_size() > 0
        return self._force_close or (self._task_handler is None and not unsent)

    def drop(self) -> None:
        """End without waiting for the client."""
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()

    def _drop_unasked(self) -> None:
        if not self.asked:
            self.drop()

    def _watch_unread(self) -> None:
        """Look later whether the client has taken anything of what waits for it."""
        self._unread = self._loop.call_later(self._unread_seconds, self._drop_unread, self._unsent())

    def _drop_unread(self, before: tuple[int, int]) -> None:
        if self._unsent() == before:
            self.drop()
        else:
            self._watch_unread()

    def _unsent(self) -> tuple[int, int]:
        """How many bytes wait here and in the system; nobody adds to them while writing pauses."""
        if self.transport is None:
            return 0, 0
        connection = self.transport.get_extra_info("socket")
        queued = array("i", [0])
        with suppress(OSError, ValueError):  # not everywhere known
            fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, queued)
        return self.transport.get_write_buffer_size(), queued[0]

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer; it is the last one where the service ends."""
        if self._ending:
            resp.force_close()
        sent = await super().finish_response(request, resp, start_time)
        body = request.content
        if body.exception() is None and request.content_length is None and not body.is_eof():
            await self._see_out(body)
        if body.exception() is not None:
            self._lingering_time = 0.0  # the rest of the body cannot be read
        return sent

    async def _see_out(self, body: StreamReader) -> None:
        """Read on for a while what may never end: a client that is cut off may lose its answer.

        At a pace that makes the client wait, without which some would not look whether there is an answer.
        """
        seconds = 0.0 if self._ending else self._lingering_time
        try:
            async with asyncio.timeout(seconds) as self._seeing_out:
                while not body.is_eof():
                    await body.readany()
                    await asyncio.sleep(_PACE_SECONDS)
        except (TimeoutError, ConnectionError):
            pass  # it was long enough, or the client has gone
        finally:
            self._seeing_out = None
        if not body.is_eof():
            self._lingering_time = 0.0

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
            refusal = self._unknown_method(exc) or _invalid(HTTPStatus(status))
            request._version = HttpVersion11  # of a stand-in, as nobody knows what the client speaks
        answer = failure(refusal, request_id)
        response = _Counted(self._limiter, request_id, answer.status, answer.headers, answer.body)
        response.headers["Connection"] = "close"
        response.force_close()
        return response

    def _unknown_method(self, error: BaseException | None) -> Refusal | None:
        """The answer to a request of which the parser does not know the method, and nothing else is wrong.

        Its first line stands in the parser's message.
        """
        line = _FIRST_LINE.search(str(error)) if isinstance(error, BadHttpMethod) else None
        if line is None:
            return None
        allowed = self._methods_at(line["path"].partition("?")[0])
        return method_not_allowed(line["method"], allowed) if allowed else not_found("endpoint")


def _invalid(status: HTTPStatus) -> Refusal:
    text = "The request must be valid HTTP/1.1: its first line, a header or its body cannot be read."
    return Refusal(status, "invalid_http", text)


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
