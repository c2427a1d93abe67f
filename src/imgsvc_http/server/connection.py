"""A client's connection: its timeouts, its end, and the answer to bytes that are not HTTP."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import struct
import uuid
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import BadHttpMethod, LineTooLong

from imgsvc_http.answering.errors import Refusal, as_refusal, refusal
from imgsvc_http.answering.headers import common_headers
from imgsvc_http.answering.responses import Response, failure
from imgsvc_http.gate.addresses import client_network
from imgsvc_http.gate.rate_limit import RateLimiter
from imgsvc_http.monitoring.access_log import LOGGED, AccessLog, Logged
from imgsvc_http.runtime.private_names import ClientHandler, speak_http_1_1

_log = logging.getLogger(__name__)
_DISCARD_SECONDS = 0.05
_BYTES_ACKED = struct.Struct("120xQ")
"""The place of ``tcpi_bytes_acked`` in ``struct tcp_info`` of Linux."""

_FIRST_LINE = re.compile(r"b(['\"])(?P<method>[\w!#$%&'*+.^`|~-]+) (?P<path>/\S*) HTTP/1\.[01]\1", re.ASCII)


class Connection(ClientHandler):
    """A connection that answers in the shape of all errors, even if there is no valid request.

    Args:
        server: handles its requests.
        connection: its socket.
        limiter: counts what is no valid request.
        unknown: gives the error of a method and a path that no endpoint has.
        on_close: is called when the connection has ended.
        access_log: logs and counts requests.
        header_seconds: how long the first request may take to arrive, up to its body.
        idle_seconds: how long to wait for each further request.
        slow_seconds: over how long a client must take ``slow_rate`` bytes a second of what waits for it.
    """

    __slots__ = (
        "_discarding", "_ending", "_header_seconds", "_header_timer", "_limiter", "_on_close",
        "_paused_since", "_slow_rate", "_slow_seconds", "_slow_timer", "_socket", "_unknown", "_waited",
        "since",
    )  # fmt: skip

    def __init__(
        self,
        server: web.Server,
        connection: socket.socket,
        limiter: RateLimiter,
        unknown: Callable[[str, str], Refusal],
        access_log: AccessLog,
        *,
        on_close: Callable[[], None],
        header_seconds: float,
        idle_seconds: float,
        slow_seconds: float,
        slow_rate: int,
    ) -> None:
        loop = asyncio.get_running_loop()
        given: Any = lambda *_: access_log  # noqa: E731 (a function would need more lines for its types)
        super().__init__(
            server,
            loop=loop,
            access_log_class=given,
            keepalive_timeout=idle_seconds,
            auto_decompress=False,  # compressed bodies are refused
        )
        self._limiter = limiter
        self._unknown = unknown
        self._on_close = on_close
        self._header_seconds = header_seconds
        self._socket = connection
        self._slow_seconds = slow_seconds
        self._slow_rate = slow_rate
        self._header_timer: asyncio.TimerHandle | None = None
        self._slow_timer: asyncio.TimerHandle | None = None
        self._paused_since: float | None = None
        self._waited = 0.0
        self._discarding: asyncio.Timeout | None = None
        self._ending = False
        self.since = loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Whatever the system does not take waits for the client, before anything more is written.
        cast(asyncio.Transport, transport).set_write_buffer_limits(high=1, low=0)
        self._header_timer = asyncio.get_running_loop().call_later(
            self._header_seconds, self._drop_without_request
        )

    def connection_lost(self, exc: BaseException | None) -> None:
        for timer in (self._header_timer, self._slow_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._on_close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._paused_since = asyncio.get_running_loop().time()
        if self._slow_timer is None:
            self._watch()

    def resume_writing(self) -> None:
        self._waited += self._waiting_seconds()
        self._paused_since = None
        super().resume_writing()

    @property
    def answered(self) -> bool:
        """True if it waits for a request, or reads the rest of a body after its response."""
        return self.idle or self._discarding is not None

    def finish(self) -> bool:
        """Close the connection after the current response. Return True if it is closed already."""
        self._ending = True
        if self.idle:
            self.force_close()
        if self._discarding is not None:
            self._discarding.reschedule(asyncio.get_running_loop().time())
        unsent = self.transport is not None and self.transport.get_write_buffer_size() > 0
        return self.closing or (self.ended and not unsent)

    def drop(self) -> None:
        """Close the connection at once."""
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()

    def _drop_without_request(self) -> None:
        if not self.used:
            self.drop()

    def _watch(self) -> None:
        """Check later how much the client has taken of what waits for it."""
        self._waited = 0.0
        if self._paused_since is not None:
            self._paused_since = asyncio.get_running_loop().time()
        self._slow_timer = asyncio.get_running_loop().call_later(
            self._slow_seconds, self._drop_slow, _acknowledged(self._socket)
        )

    def _drop_slow(self, before: int) -> None:
        """Close the connection if its client took too little. Time in which nothing waited does not count."""
        waited = self._waited + self._waiting_seconds()
        if _acknowledged(self._socket) - before < self._slow_rate * waited:
            self.drop()
        elif self._paused_since is None:
            self._slow_timer = None
        else:
            self._watch()

    def _waiting_seconds(self) -> float:
        """Return for how long something has been waiting for the client."""
        return 0.0 if self._paused_since is None else asyncio.get_running_loop().time() - self._paused_since

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send a response, which is the last one while the service ends.

        aiohttp itself has refused a request whose target is no path, such as that of ``OPTIONS *``.
        """
        if isinstance(resp, web.HTTPException):
            resp = self._refused(request, str(uuid.uuid4()), refusal("not_found", what="endpoint"))
        if self._ending:
            resp.force_close()
        try:
            sent = await super().finish_response(request, resp, start_time)
        except asyncio.CancelledError:
            if start_time is not None and isinstance(self.access_logger, AccessLog):
                self.access_logger.client_left(request, start_time)
            raise
        if isinstance(sent[0], web.Response):
            sent[0].body = None  # aiohttp keeps a response until the next request
        body = request.content
        if body.exception() is None and request.content_length is None and not body.is_eof():
            await self._discard(body)
        if body.exception() is not None:
            self.discard_seconds = 0.0  # the rest of the body cannot be read
        return sent

    async def _discard(self, body: StreamReader) -> None:
        """Read a body on for a while, since a client that is cut off may lose its response.

        It is read slowly, so that the client has to wait: some do not look for a response while they send.
        """
        seconds = 0.0 if self._ending else self.discard_seconds
        try:
            async with asyncio.timeout(seconds) as self._discarding:
                while not body.is_eof():
                    await body.readany()
                    await asyncio.sleep(_DISCARD_SECONDS)
        except (TimeoutError, ConnectionError):
            pass  # it took too long, or the client has gone
        finally:
            self._discarding = None
        if not body.is_eof():
            self.discard_seconds = 0.0

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to a request that the parser refuses. The connection ends with it."""
        if request.writer.output_size > 0:
            raise ConnectionError("A response was begun already.")
        request_id = str(uuid.uuid4())
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            refused = as_refusal(exc if isinstance(exc, Exception) else RuntimeError(message), request_id)
        else:
            _log.debug("%s is no valid HTTP: %s", request_id, exc)
            refused = self._unknown_method(exc) or refusal("invalid_http", reason=_reason(exc))
            speak_http_1_1(request)  # nobody knows which version the client speaks
        return self._refused(request, request_id, refused)

    def _refused(self, request: web.BaseRequest, request_id: str, refused: Refusal) -> _CountedResponse:
        """Return the response to a request that no endpoint has seen. The connection ends with it."""
        request[LOGGED] = Logged(id=request_id, error=refused.slug)
        response = _CountedResponse(self._limiter, request_id, failure(refused, request_id))
        response.headers["Connection"] = "close"
        response.force_close()
        return response

    def _unknown_method(self, error: BaseException | None) -> Refusal | None:
        """Return the error of a request in which only the method is unknown to the parser.

        Its first line is in the message of the parser.
        """
        line = _FIRST_LINE.search(str(error)) if isinstance(error, BadHttpMethod) else None
        return None if line is None else self._unknown(line["method"], line["path"].partition("?")[0])


def _acknowledged(connection: socket.socket) -> int:
    """Return how many bytes the client's system has taken."""
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.size)
        return int(_BYTES_ACKED.unpack(info)[0])
    except (OSError, struct.error):  # it is closed, or the system does not tell
        return 0


def _reason(error: BaseException | None) -> str:
    """Return what is wrong with a request that the parser refuses."""
    if isinstance(error, LineTooLong):
        return "its first line, with the URL, and each header must be shorter; send a long request with POST"
    return "its first line, a header or its body cannot be read"


class _CountedResponse(web.Response):
    """A response that counts in the rate of its client's address."""

    def __init__(self, limiter: RateLimiter, request_id: str, response: Response) -> None:
        headers: Any = response.headers
        super().__init__(status=response.status, headers=headers, body=bytes(response.body))
        self._limiter = limiter
        self._request_id = request_id

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        rate = await self._limiter.hit(f"address:{client_network(request.remote or '')}")
        for name, value in common_headers(self._request_id, rate.headers).items():
            self.headers.setdefault(name, value)
        return await super().prepare(request)
