"""What a listening process does with the connections that its parent hands over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from imgsvc_http.server.channel import CONNECTION, Channel, pair
from imgsvc_http.server.watchdog import Watchdog

pytestmark = pytest.mark.asyncio


@pytest.fixture
def parent() -> Iterator[tuple[socket.socket, Channel]]:
    """The parent's end, and that of a process."""
    ours, theirs = pair()
    with ours, theirs:
        yield ours, Channel(theirs, memoryview(bytearray(8)).cast("q"), Watchdog(1, 60), 0)


async def is_counted(channel: Channel) -> None:
    async with asyncio.timeout(10):
        while not channel.closed[0]:
            await asyncio.sleep(0.01)


async def test_a_process_that_takes_no_connections_closes_them(
    parent: tuple[socket.socket, Channel],
) -> None:
    ours, channel = parent
    channel.accept(lambda connection: pytest.fail("it was closed for connections"))
    channel.close()
    channel.follow(asyncio.Semaphore(0))
    client, accepted = socket.socketpair()
    with client:
        with accepted:
            socket.send_fds(ours, [CONNECTION], [accepted.fileno()])
        await is_counted(channel)
        assert client.recv(1) == b""


async def test_a_connection_that_a_process_cannot_open_is_counted(
    parent: tuple[socket.socket, Channel],
) -> None:
    """If too many files are open, the message comes without the connection."""
    ours, channel = parent
    channel.accept(lambda connection: pytest.fail("there is none"))
    channel.follow(asyncio.Semaphore(0))
    ours.send(CONNECTION)
    await is_counted(channel)
