"""Sources whose bytes take long to parse, and how little that holds others up."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop

from imgsvc_core.errors import SourceUnreachable
from imgsvc_http.fetching.address_guard import AddressGuard
from imgsvc_http.fetching.fetcher import Fetcher
from imgsvc_http.server.certificate import certificate_files
from imgsvc_http.settings import FetchSettings, ServerSettings, SocialSettings
from imgsvc_http.storage.source_files import SourceFile

LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
NewLoop = Callable[[], asyncio.AbstractEventLoop]

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
PICTURE = bytes(range(256)) * 400


@contextlib.contextmanager
def sending(parts: Iterable[bytes], *, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server that answers every connection with the same bytes, and ends it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer(connection: socket.socket) -> None:
            with contextlib.suppress(OSError), connection:
                wrapped = connection if tls is None else tls.wrap_socket(connection, server_side=True)
                with wrapped:
                    wrapped.recv(65536)
                    for part in parts:
                        wrapped.sendall(part)
                    if tls is not None:
                        wrapped.unwrap()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.getsockname()[1]}/p"
        server.shutdown(socket.SHUT_RDWR)


class Endless:
    """The same bytes again and again, after others."""

    def __init__(self, first: bytes, again: bytes) -> None:
        self._first, self._again = first, again * (1 + (1 << 18) // len(again))

    def __iter__(self) -> Iterator[bytes]:
        return itertools.chain([self._first], itertools.repeat(self._again))


async def longest_pause(url: str, into: Path) -> tuple[float, str]:
    """How long the event loop worked at most without a turn for others during a fetch; and its error."""
    fetcher = Fetcher(FetchSettings(private_allowed=("127.0.0.1",), total_seconds=1), SocialSettings())
    pauses: list[float] = []

    async def beat() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.005)
            pauses.append(time.thread_time() - before)
            before = time.thread_time()

    beating = asyncio.create_task(beat())
    with pytest.raises(SourceUnreachable) as caught:
        await fetcher.fetch(url, {}, lambda _: SourceFile(into / "source"), 10**8)
    await asyncio.sleep(0.02)
    beating.cancel()
    await fetcher.close()
    return max(pauses), str(caught.value)


def pauses_for_less(
    seconds: float, parts: Iterable[bytes], into: Path, new_loop: NewLoop, reason: str
) -> bool:
    """Whether the loop had its turn for others in one of four tries, as the machine may be busy meanwhile."""
    with sending(parts) as url, asyncio.Runner(loop_factory=new_loop) as runner:
        for _ in range(4):
            pause, error = runner.run(longest_pause(url, into))
            assert error.endswith(reason)
            if pause < seconds:
                return True
    return False


@LOOPS
@pytest.mark.parametrize("answer", [CONTINUE, HINTS])
def test_endless_informational_answers_are_refused_at_once(
    answer: bytes, new_loop: NewLoop, tmp_path: Path
) -> None:
    reason = "cannot be fetched: it sends informational responses (status 1xx) without end."
    assert pauses_for_less(0.035, Endless(b"", answer), tmp_path, new_loop, reason)


@LOOPS
@pytest.mark.parametrize(
    "parts",
    [Endless(CHUNKED, b"1\r\nx\r\n"), Endless(CHUNKED + b"1;", b"a")],
    ids=["tiny chunks", "chunk extension"],
)
def test_bodies_that_are_long_to_parse_leave_others_their_turn(
    parts: Endless, new_loop: NewLoop, tmp_path: Path
) -> None:
    assert pauses_for_less(0.035, parts, tmp_path, new_loop, "within 1 second.")


def length(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)


LONG = PICTURE * 10
TINY = bytes(range(256)) * 200
BODIES: dict[str, tuple[bytes, bytes]] = {
    "after informational answers": (CONTINUE * 10 + HINTS * 10 + length(PICTURE) + PICTURE, PICTURE),
    "of a length": (length(LONG) + LONG, LONG),
    "up to the end": (b"HTTP/1.1 200 OK\r\n\r\n" + LONG, LONG),
    "in tiny chunks": (CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in TINY) + b"0\r\n\r\n", TINY),
    "in one chunk": (CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(LONG), LONG), LONG),
}


@LOOPS
@pytest.mark.parametrize("over_tls", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_bodies_come_whole_and_in_order(name: str, over_tls: bool, new_loop: NewLoop, tmp_path: Path) -> None:
    sent, body = BODIES[name]
    server_context, options = None, dict[str, Any]()
    if over_tls:
        certificate, key = certificate_files(ServerSettings(state_folder=tmp_path / "state"))
        server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        server_context.load_cert_chain(certificate, key)
        options["ssl"] = ssl.create_default_context(cafile=certificate)

    async def read(url: str) -> bytes:
        connector = AddressGuard.allowing(["127.0.0.1", "localhost"]).connector(**options)
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as response:
            pieces = []
            async for piece in response.content.iter_any():
                pieces.append(piece)
                await asyncio.sleep(0)  # a reader that is behind
            return b"".join(pieces)

    with sending([sent], tls=server_context) as url, asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(read(url.replace("127.0.0.1", "localhost") if over_tls else url)) == body
