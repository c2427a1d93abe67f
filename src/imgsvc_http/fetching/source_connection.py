"""A connection to a source, which cannot block the event loop with bytes that take long to parse."""

from __future__ import annotations

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Any

from aiohttp import ClientError, StreamReader
from aiohttp.http import RawResponseMessage

from imgsvc_http.runtime.private_names import SourceHandler

_SLICE_BYTES = 1 << 16
_MOST_INFORMATIONAL = 20


class TooManyInformational(ClientError):
    """A source sends informational responses (status 1xx) without end."""


class SourceConnection(SourceHandler):
    """Parses received bytes in slices, and no more of them than the reader of the body takes.

    A quarter of a megabyte may be received at once. As chunks of one byte, or as informational responses, it
    takes long to parse. Reading pauses meanwhile, and the event loop does other work.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._unparsed: deque[bytes] = deque()
        self._next_slice: asyncio.Handle | None = None
        self._informational = 0
        self._lost = False
        self._loss: BaseException | None = None

    @property
    def should_close(self) -> bool:
        """True if the connection cannot be used again; bytes that are left belong to no response."""
        return super().should_close or bool(self._unparsed) or self._lost

    def data_received(self, data: bytes) -> None:
        if not data:  # lets the parser go on with what it has kept
            super().data_received(data)
            return
        self._unparsed.extend(data[at : at + _SLICE_BYTES] for at in range(0, len(data), _SLICE_BYTES))
        if self._next_slice is None:
            self._parse_slices()

    def resume_reading(self, *args: Any, **kwargs: Any) -> None:
        """Go on later: aiohttp calls this for every chunk of a body that is taken."""
        if args or kwargs:  # at the end of a body, when nothing is kept
            super().resume_reading(*args, **kwargs)
        else:
            self._continue_later()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Queue a response, unless it is one informational response too many."""
        if self._informational > _MOST_INFORMATIONAL:
            return
        informational = HTTPStatus.CONTINUE <= data[0].code < HTTPStatus.OK
        self._informational = self._informational + 1 if informational else 0
        super().feed_data(data, size)

    def close(self) -> None:
        """Close the connection, and report its end if all that came before it was read."""
        super().close()
        self._report_end()

    def abort(self) -> None:
        """Close the connection at once, and report its end if all that came before it was read."""
        super().abort()
        self._report_end()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Report the end after all that came before it, as soon as the reader of the body has taken that."""
        self._lost, self._loss = True, exc
        self._report_end()

    def _report_end(self) -> None:
        """Report that the connection is lost, unless bytes are left to read."""
        if not self._lost:
            return
        if self.transport is not None and self.exception() is None:
            if self._unparsed or self.reading_paused or self._next_slice is not None:
                return
            super().data_received(b"")  # the rest that the parser has kept
            if self.reading_paused:
                return
        self._lost = False
        self._unparsed.clear()
        super().connection_lost(self._loss)

    def _continue_later(self) -> None:
        if self._next_slice is None:
            self._next_slice = asyncio.get_running_loop().call_soon(self._continue)

    def _continue(self) -> None:
        self._next_slice = None
        if self.transport is None:  # nobody reads the rest
            self._unparsed.clear()
        else:
            super().resume_reading()
            self._parse_slices()
            self._report_end()

    def _parse_slices(self) -> None:
        """Parse slices until the reader of the body is behind."""
        while self._unparsed and not self.reading_paused:
            super().data_received(self._unparsed.popleft())
            if self._informational > _MOST_INFORMATIONAL and self.exception() is None:
                self.set_exception(TooManyInformational())
            if self.exception() is not None:
                self._unparsed.clear()
                if self.transport is not None:
                    self.transport.abort()
        if self._unparsed and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
