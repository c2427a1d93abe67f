"""Where a process gets its connections from, and where it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable
from typing import Protocol

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1

Take = Callable[[socket.socket], None]
"""Takes a connection that was accepted."""


class Intake(Protocol):
    """Gives connections to a process.

    There are two stops: at the first, the process is no longer ready, so that balancers send no more
    requests; at the second, it finishes those in flight and ends.
    """

    def follow(self, stops: asyncio.Semaphore) -> None:
        """Release a semaphore at each stop."""

    def accept(self, take: Take) -> None:
        """Call a function with each connection from now on."""

    def report_ready(self, key: str | None) -> None:
        """Tell that connections are accepted, and the first key if it was made now."""

    def note_closed(self) -> None:
        """Note the end of a connection."""

    async def close(self) -> None:
        """Accept no more connections."""


class OwnPort:
    """Accepts the connections of a port for the only process. Signals stop it.

    Args:
        listening: the socket.
        drain_seconds: the time between the two stops.
        greet: is called with the first key as soon as connections are accepted.
    """

    def __init__(
        self, listening: socket.socket, drain_seconds: float, greet: Callable[[str | None], None]
    ) -> None:
        self._listening = listening
        self._drain_seconds = drain_seconds
        self._greet = greet
        self._accepting: asyncio.Task[None] | None = None

    def follow(self, stops: asyncio.Semaphore) -> None:
        """Release a semaphore at the first signal, SIGINT or SIGTERM, and at another one or after a while."""
        loop = asyncio.get_running_loop()
        signals = 0

        def stop() -> None:
            nonlocal signals
            signals += 1
            stops.release()
            if signals > 1:
                return
            seconds = self._drain_seconds if self._accepting else 0
            if seconds:
                _log.info("Serving for %g more seconds, until balancers send no more requests.", seconds)
            loop.call_later(seconds, stops.release)

        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):
                loop.add_signal_handler(number, stop)

    def accept(self, take: Take) -> None:
        """Call a function with each connection from now on."""
        self._accepting = asyncio.create_task(self._accept(take))

    def report_ready(self, key: str | None) -> None:
        """Greet."""
        self._greet(key)

    def note_closed(self) -> None:
        """Do nothing, as connections are not spread."""

    async def close(self) -> None:
        """Accept no more connections."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        self._listening.close()

    async def _accept(self, take: Take) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listening)
            except OSError:  # too many open files, or a client that has gone
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            take(connection)
