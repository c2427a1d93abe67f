"""Between the parent process and a listening process: connections and signals one way, reports the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
from collections.abc import Callable
from typing import Any

import attrs

from imgsvc_http.server.watchdog import Watchdog

Take = Callable[[socket.socket], None]
"""Takes a connection that was accepted."""

CONNECTION = b"c"
STOP = b"s"
READY = b"r"
FAILED = b"f"
_REPORT_BYTES = 1 << 16


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a channel, which keeps the bounds of messages."""
    parent, listener = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent.setblocking(False)
    listener.setblocking(False)
    return parent, listener


@attrs.define(eq=False)
class Channel:
    """The end of a listening process: it gets connections from the parent, and is told to stop.

    There are two stops: at the first, the process is no longer ready, so that balancers send no more
    requests; at the second, it finishes those in flight and ends.

    ``closed`` holds how many connections each process has closed: the parent hands the next connection to
    the process with the fewest open ones.
    """

    connection: socket.socket = attrs.field(repr=False)
    closed: memoryview[int] = attrs.field(repr=False)
    watchdog: Watchdog = attrs.field(repr=False)
    number: int
    _take: Take | None = attrs.field(default=None, init=False)

    def follow(self, stops: asyncio.Semaphore) -> None:
        """Release a semaphore at each stop that the parent tells. Connections are closed until `accept`.

        From now on the event loop shows the parent that it runs.
        """
        self.watchdog.beat(self.number)
        asyncio.get_running_loop().add_reader(self.connection, self._read, stops)

    def accept(self, take: Take) -> None:
        """Call a function with each connection from now on."""
        self._take = take

    def report_ready(self, key: str | None) -> None:
        """Tell the parent that connections can be accepted."""
        self.connection.send(READY + pickle.dumps(key))

    def report_failure(self, error: Exception) -> None:
        """Tell the parent why the process cannot start."""
        with contextlib.suppress(OSError):
            self.connection.send(FAILED + pickle.dumps(error)[:_REPORT_BYTES])

    def note_closed(self) -> None:
        """Count a connection that was closed."""
        self.closed[self.number] += 1

    def close(self) -> None:
        """Take no more connections."""
        self._take = None

    def _read(self, stops: asyncio.Semaphore) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                message, descriptors, _, _ = socket.recv_fds(self.connection, 1, 1)
                if message == CONNECTION:
                    self._receive(descriptors)
                elif message == STOP:
                    stops.release()
                else:
                    os._exit(1)  # the parent died

    def _receive(self, descriptors: list[int]) -> None:
        if descriptors and self._take is not None:
            self._take(socket.socket(fileno=descriptors[0]))
            return
        for descriptor in descriptors:  # there is none if too many files are open
            os.close(descriptor)
        self.note_closed()


def receive_report(connection: socket.socket) -> Any:
    """Return what a listening process reports; raise its error, or `EOFError` if it died."""
    report = connection.recv(_REPORT_BYTES + 1)
    if not report:
        raise EOFError
    content = pickle.loads(report[1:])
    if report[:1] == FAILED:
        raise content
    return content
