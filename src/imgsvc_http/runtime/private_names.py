"""Private names of aiohttp, asyncio, uvloop, multipart and DBOS that the service uses.

They stand here and nowhere else, so that a release that renames one fails one test. The core and the batch
have such a module, too, as neither may know of a web framework.
"""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from typing import Any

from aiohttp import HttpVersion11, TCPConnector, web, web_protocol
from aiohttp.client_proto import ResponseHandler
from multipart import MultipartSegment, PushMultipartParser


class ClientHandler(web.RequestHandler):
    """A connection of a client, whose state can be asked for, and whose requests learn of broken bodies."""

    __slots__ = ()

    def data_received(self, data: bytes) -> None:
        """Take bytes. If they cannot be parsed, the body that they belong to is not waited for any longer."""
        super().data_received(data)
        if not self._messages or not isinstance(failure := self._messages[-1][0], web_protocol._ErrInfo):
            return
        request = self._current_request
        if request is not None and not request.content.is_eof():
            request._cancel(web.RequestPayloadError(failure.message))

    @property
    def used(self) -> bool:
        """True if a request has arrived."""
        return self._request_count > 0

    @property
    def idle(self) -> bool:
        """True if it waits for a request."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def closing(self) -> bool:
        """True if it ends with the present request."""
        return self._force_close

    @property
    def ended(self) -> bool:
        """True if it handles no more requests."""
        return self._task_handler is None

    @property
    def discard_seconds(self) -> float:
        """How long the rest of a body is read after the response."""
        return self._lingering_time

    @discard_seconds.setter
    def discard_seconds(self, seconds: float) -> None:
        self._lingering_time = seconds


class ListeningSite(web.BaseSite):
    """A site that knows its runner and can be removed from it."""

    @property
    def runner(self) -> web.BaseRunner:
        """The runner that it was made with."""
        return self._runner

    def unregister(self) -> None:
        """Remove the site from its runner."""
        self._runner._unreg_site(self)


class SourceHandler(ResponseHandler):
    """A connection to a server, which tells if it is read from."""

    @property
    def reading_paused(self) -> bool:
        """True if the reader of the body is behind."""
        return self._reading_paused


class LenientParser(PushMultipartParser):  # type: ignore[misc]  # a base has no types
    """A parser of multipart bodies that accepts parts of any disposition, also without a name."""

    def _create_segment(self, headerlist: list[tuple[str, str]]) -> MultipartSegment:
        return MultipartSegment(headerlist)


def tls_protocol(loop: asyncio.AbstractEventLoop, *args: Any, **kwargs: Any) -> asyncio.Protocol:
    """Return what stands between a transport and a protocol to speak TLS, as the event loop makes it."""
    module = "uvloop.loop" if type(loop).__module__.startswith("uvloop") else "asyncio.sslproto"
    made: asyncio.Protocol = import_module(module).SSLProtocol(loop, *args, **kwargs)
    return made


def limit_pipelining(requests: int) -> None:
    """Let connections of this process hold so many requests that wait for those before them."""
    web_protocol.MAX_MSG_QUEUE_SIZE = requests


def speak_http_1_1(request: web.BaseRequest) -> None:
    """Answer a request as one of HTTP/1.1."""
    request._version = HttpVersion11
    request._cache.pop("version", None)  # what it was when it was asked for


def connect_with(connector: TCPConnector, connection: type[ResponseHandler]) -> None:
    """Let a connector make connections of a class."""
    factory: Any = partial(connection, loop=connector._loop)
    connector._factory = factory


def recover_workflows_of(executors: list[str]) -> None:
    """Let DBOS put the interrupted workflows of dead executors back into their queues."""
    from dbos import DBOS

    DBOS._recover_pending_workflows(executors)
