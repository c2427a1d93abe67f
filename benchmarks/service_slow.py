"""Slow readers against the memory of the service: what 2,000 of them cost, and which are closed.

``python -m benchmarks.service_slow [PAGE]`` lets 2,000 connections of another account ask over TLS for one
large picture by URL, and then each for a result of its own by POST. Half of them take 3 kB a second, half
.4 kB. The quiet account uploads photographs beside them. The table goes into a page of the documentation.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import parse_headers
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

import attrs
from tests.support.processes import listeners_of

from benchmarks.delivery import Delivering, delivering
from benchmarks.harness import Bound, options_of, print_table, verdict, write_table
from benchmarks.pictures import picture
from benchmarks.service import BOUNDARY, Running, client, form
from benchmarks.service_attack import second_key
from benchmarks.service_sizing import peaks_of, proportional_memory

MARKS = ("<!-- slow -->", "<!-- /slow -->")
COLUMNS = (
    "2,000 slow readers of", "size of each", "MB before", "most MB beside them", "MB afterwards",
    "closed of those below 1 kB/s", "closed of those above", "longest upload beside them",
)  # fmt: skip
READERS = 2000
_AS_PNG = {"output": {"format": "png"}, "response": {"mode": "binary"}}
STEADY, SLOW = 3000, 400  # bytes a second
_WINDOW = 1 << 12
_ADDRESSES = 200  # of the readers, as each may open 50 connections a second
_OPENING = 50  # connections that open at a time
_SECONDS = 100.0  # a slow connection is seen as such after two times 30 seconds at the latest
_SETTLE_SECONDS = 20.0
_MOST_MEGABYTES = 150
_NOISE_MEGABYTES = 50  # that allocators keep, also after several waves of connections
_MOST_SECONDS = 2.0


@attrs.define
class Reader:
    """A connection that takes so many bytes a second of its answer."""

    connection: ssl.SSLSocket
    rate: int
    last: float = attrs.field(factory=time.monotonic)

    def take(self) -> None:
        """Take what the time since the last call has for it."""
        before, self.last = self.last, time.monotonic()
        with contextlib.suppress(OSError):  # nothing has arrived, or the connection has ended
            self.connection.recv(round(self.rate * (self.last - before)))


def main() -> int:
    options = options_of(__doc__, page=True)
    _allow_files(4 * READERS)  # half of those of the service are for connections
    rows, bounds = [], []
    with delivering("TLS") as site:
        other = attrs.evolve(site.running, key=second_key(site.running))
        for what, request in {"a picture by URL": by_url(site), "results by POST": by_post(other)}.items():
            row, found = measured(site.running, what, request)
            rows.append(row)
            bounds += found
    print_table(COLUMNS, rows)
    write_table(options.page, MARKS, COLUMNS, rows)
    return verdict(bounds)


def by_url(site: Delivering) -> bytes:
    """Return a request for one large picture, which all readers share."""
    path = urlsplit(site.url(resize="2200x", format="png")).path
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def by_post(other: Running) -> bytes:
    """Return a request for a result, of which each reader gets its own."""
    spec = {
        "resize": {"width": 560},
        "output": {"format": "png"},
        "response": {"mode": "binary"},
    }
    body = form(picture("small.png").read_bytes(), spec)
    head = (
        f"POST /1.0/upload HTTP/1.1\r\nHost: x\r\nX-Svc-Binary: 1\r\nAuthorization: Bearer {other.key}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def measured(running: Running, what: str, request: bytes) -> tuple[tuple[str, ...], list[Bound]]:
    """Measure the service beside readers of one kind, and when they have gone."""
    photo = form(picture("6mp.jpg").read_bytes())
    client(running, photo)()
    size = _size(running, request)
    time.sleep(_SETTLE_SECONDS)
    memory = partial(_memory, running)
    before = memory()
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_attack, args=(running, request, theirs), daemon=True)
    with peaks_of(memory) as peaks:
        process.start()
        ours.recv()
        longest = _longest(client(running, photo), _SECONDS)
    ours.send(None)
    slow_closed, steady_closed = ours.recv()
    process.join()
    time.sleep(_SETTLE_SECONDS)
    after, half = memory(), READERS // 2
    row = (
        what, f"{size / 1e6:.2g} MB", f"{before:.0f}", f"{max(peaks):.0f}", f"{after:.0f}",
        f"{slow_closed:,} of {half:,}", f"{steady_closed:,} of {half:,}", f"{longest:.2f} s",
    )  # fmt: skip
    return row, [
        Bound(f"growth beside readers of {what}", max(peaks) - before, _MOST_MEGABYTES, unit=" MB"),
        Bound(f"growth that is left of readers of {what}", after - before, _NOISE_MEGABYTES, unit=" MB"),
        Bound(f"slow readers of {what} that were closed", slow_closed, half, at_least=True),
        # Each result has bytes of its own, of which there is no room for so many.
        *([] if "POST" in what else [Bound(f"steady readers of {what} that were closed", steady_closed, 0)]),
        Bound(f"longest upload beside readers of {what}", longest, _MOST_SECONDS, unit=" s"),
    ]


def _memory(running: Running) -> float:
    """Return the memory of the processes that listen, in MB."""
    return sum(map(proportional_memory, listeners_of(running.pid)))


def _longest(call: Callable[[], object], seconds: float) -> float:
    """Call again and again for so long. Return the longest time of a call."""
    longest, end = 0.0, time.monotonic() + seconds
    while (started := time.monotonic()) < end:
        call()
        longest = max(longest, time.monotonic() - started)
        time.sleep(0.2)
    return longest


def _size(running: Running, request: bytes) -> int:
    """Return the size of the answer, which is in the cache of the service from then on if it can be."""
    with _asked(running, request, 0) as connection, connection.makefile("rb") as answer:
        assert b" 200 " in answer.readline()
        return int(parse_headers(answer)["Content-Length"])


def _attack(running: Running, request: bytes, pipe: Connection) -> None:
    """Begin all answers, tell so, and read on slowly until the other end of the pipe says so."""
    _allow_files(2 * READERS)
    readers: list[Reader] = []

    def begin(number: int) -> None:
        while (connection := _begun(running, request, number)) is None:
            time.sleep(1)  # the service is busy
        readers.append(Reader(connection, SLOW if number % 2 else STEADY))

    told = False
    with ThreadPoolExecutor(_OPENING) as threads:
        threads.map(begin, range(READERS))
        while not pipe.poll():
            passed = time.monotonic()
            for reader in tuple(readers):
                reader.take()
            if len(readers) == READERS and not told:
                pipe.send(None)
                told = True
            time.sleep(max(0, passed + 1 - time.monotonic()))
    held = _held(running)
    pipe.send(
        [
            sum(reader.rate == rate and reader.connection.getsockname() not in held for reader in readers)
            for rate in (SLOW, STEADY)
        ]
    )


def _held(running: Running) -> set[tuple[str, int]]:
    """Return the addresses of clients whose connections the service holds.

    The clients do not see yet that others are closed: they still get what the system has for them.
    """
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    service = f":{urlsplit(running.url).port:04X}"
    return {_address(row[2]) for row in rows if row[1].endswith(service) and row[9] != "0"}


def _address(text: str) -> tuple[str, int]:
    host, port = (bytes.fromhex(part) for part in text.split(":"))
    return socket.inet_ntoa(host[::-1]), int.from_bytes(port, "big")


def _begun(running: Running, request: bytes, number: int) -> ssl.SSLSocket | None:
    """Return a connection whose answer has begun, or None if it is refused."""
    with contextlib.suppress(OSError):
        connection = _asked(running, request, number)
        if b" 200 " in connection.recv(16):
            connection.setblocking(False)
            return connection
        connection.close()
    return None


def _asked(running: Running, request: bytes, number: int) -> ssl.SSLSocket:
    """Send a request over a new connection, whose system takes little of the answer."""
    address = urlsplit(running.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _WINDOW)
    connection.bind((f"127.0.0.{2 + number % _ADDRESSES}", 0))
    connection.connect(("127.0.0.1", address.port))
    secure = running.tls.wrap_socket(connection, server_hostname="localhost")
    secure.sendall(request)
    return secure


def _allow_files(count: int) -> None:
    """Let this process open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


if __name__ == "__main__":
    sys.exit(main())
