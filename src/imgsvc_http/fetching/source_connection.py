"""A connection to a source, which takes turns with everybody else however little its bytes bring."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from http import HTTPStatus
from typing import Any

from aiohttp import ClientError, StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage

_SLICE_BYTES = 1 << 16
_TURN_SECONDS = 0.001
_MOST_INFORMATIONAL = 20


class EndlessInformation(ClientError):
    """A source sends informational answers, and none of its own."""


class SourceConnection(ResponseHandler):
    """Hands what comes to the parser in slices, between which others have their turn.

    A quarter of a megabyte may come at once, and as chunks of a byte or as informational answers it takes
    long to parse. Nothing more is read meanwhile.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._left: deque[bytes] = deque()
        self._next_turn: asyncio.Handle | None = None
        self._informational = 0
        self._lost = False
        self._lost_by: BaseException | None = None

    @property
    def should_close(self) -> bool:
        """Whether nothing further may be asked over it; what is left belongs to no answer."""
        return super().should_close or bool(self._left) or self._lost

    def data_received(self, data: bytes) -> None:
        if not data:  # what the parser kept, when reading goes on
            super().data_received(data)
            return
        self._left.extend(data[at : at + _SLICE_BYTES] for at in range(0, len(data), _SLICE_BYTES))
        if self._next_turn is None:
            self._parse_for_a_while()

    def resume_reading(self, *args: Any, **kwargs: Any) -> None:
        """Read on in the next turn: this is called for every single piece of a body that is taken."""
        if args or kwargs:  # at the end of a body, which keeps nothing back
            super().resume_reading(*args, **kwargs)
        else:
            self._await_turn()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Queue an answer, as long as it is none too many before the one that counts."""
        if self._informational > _MOST_INFORMATIONAL:
            return
        informational = HTTPStatus.CONTINUE <= data[0].code < HTTPStatus.OK
        self._informational = self._informational + 1 if informational else 0
        super().feed_data(data, size)

    def close(self) -> None:
        super().close()
        self._tell_end()

    def abort(self) -> None:
        super().abort()
        self._tell_end()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the end, but after all that came before it, as soon as the body's reader has taken that."""
        self._lost, self._lost_by = True, exc
        self._tell_end()

    def _tell_end(self) -> None:
        """Tell that the connection is lost, if it is and nothing is left that somebody wants."""
        if not self._lost:
            return
        if self.transport is not None and self.exception() is None:
            if self._left or self._reading_paused or self._next_turn is not None:
                return
            super().data_received(b"")  # what the parser may have kept
            if self._reading_paused:
                return
        self._lost = False
        self._left.clear()
        super().connection_lost(self._lost_by)

    def _await_turn(self) -> None:
        if self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._next_turn = None
        if self.transport is None:  # nobody wants the rest
            self._left.clear()
        else:
            super().resume_reading()
            self._parse_for_a_while()
            self._tell_end()

    def _parse_for_a_while(self) -> None:
        """Parse what is left, until it is the turn of others or the reader of the body is behind."""
        ends = time.monotonic() + _TURN_SECONDS
        while self._left and not self._reading_paused:
            self._parse_slice()
            if time.monotonic() > ends:
                break
        if self._left:
            if self.transport is not None and not self.transport.is_closing():
                self.transport.pause_reading()
            if not self._reading_paused:
                self._await_turn()

    def _parse_slice(self) -> None:
        super().data_received(self._left.popleft())
        if self._informational > _MOST_INFORMATIONAL and self.exception() is None:
            self.set_exception(EndlessInformation())
        if self.exception() is not None:
            self._left.clear()
            if self.transport is not None:
                self.transport.abort()
