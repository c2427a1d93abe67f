"""One account beside slow and many clients of another one: the longest that its calls and health take.

The quiet account asks for health, for itself, for an upload and for a fetch in turns, each over a new
connection. Then the same beside 300 fetches from a source that sends byte by byte, beside 300 uploads that
arrive byte by byte, and beside 128 clients that upload photographs as fast as they can.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import attrs

from benchmarks.harness import Bound, options_of, print_table, verdict
from benchmarks.peers import serving_files
from benchmarks.pictures import picture
from benchmarks.service import BOUNDARY, Running, form, service
from benchmarks.service_attack import OTHER_ADDRESS, second_key, under

Attack: TypeAlias = Callable[[Running, bytes], Coroutine[Any, Any, None]]

_DRIPS = 300
_CLIENTS = 128
_DRIP_SECONDS = 0.1
_SETTLE_SECONDS = 1.0
_RETRY_SECONDS = 2.0
_MOST_SECONDS = 1.0


def main() -> int:
    options = options_of(__doc__, seconds=25.0)
    photo = form(picture("6mp.jpg").read_bytes())
    attacks: dict[str, Attack | None] = {
        "nobody": None,
        f"{_DRIPS} dripping sources": dripping_sources,
        f"{_DRIPS} dripping uploads": dripping_uploads,
        f"{_CLIENTS} clients": many_clients,
    }
    rows, bounds = [], []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        origin = stack.enter_context(serving_files(picture("small.png").parent, folder)).url
        running = stack.enter_context(
            service(
                folder,
                fetch__private_allowed="127.0.0.1",
                workers__queue=_CLIENTS,
                server__upload_disk_bytes=2**36,
            )
        )
        other = attrs.evolve(running, key=second_key(running))
        for what, attack in attacks.items():
            with under(_attack, attack, other, photo) if attack else contextlib.nullcontext():
                taken = quiet_account(running, f"{origin}/small.png", options.seconds)
            time.sleep(_SETTLE_SECONDS)
            for call, seconds in taken.items():
                middle, longest = statistics.median(seconds), max(seconds)
                rows.append((f"{call} beside {what}", len(seconds), f"{1e3 * middle:.0f}", f"{longest:.2f}"))
                if attack is not None and (attack is not many_clients or call == "health"):
                    bounds.append(Bound(f"longest {call} beside {what}", longest, _MOST_SECONDS, unit=" s"))
    print_table(("", "calls", "median ms", "longest s"), rows)
    return verdict(bounds)


def _attack(attack: Attack, attacker: Running, photo: bytes) -> None:
    asyncio.run(attack(attacker, photo))


async def dripping_sources(running: Running, _: bytes) -> None:
    """Let the service fetch from a source that sends byte by byte."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nConnection: close\r\n\r\n")
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(_DRIP_SECONDS)
        writer.close()

    source = await asyncio.start_server(drip, "127.0.0.1", 0, backlog=1024)
    port = source.sockets[0].getsockname()[1]
    body = json.dumps({"url": f"http://127.0.0.1:{port}/"}).encode()
    request = _head(running, "fetch", "application/json", len(body)) + body
    await _repeat(_DRIPS, lambda tls: _exchange(running, tls, [request]), running.tls)


async def dripping_uploads(running: Running, photo: bytes) -> None:
    """Upload byte by byte."""
    head = _upload(running, photo)
    await _repeat(_DRIPS, lambda tls: _exchange(running, tls, chain([head], _bytes_of(photo))), running.tls)


async def many_clients(running: Running, photo: bytes) -> None:
    """Upload as fast as the service answers."""
    request = _upload(running, photo) + photo
    await _repeat(_CLIENTS, lambda tls: _exchange(running, tls, [request]), running.tls)


async def _repeat(
    clients: int, call: Callable[[ssl.SSLContext], Coroutine[Any, Any, None]], tls: ssl.SSLContext
) -> None:
    """Let clients call again and again. One that is refused waits as long as ``Retry-After`` says."""

    async def client() -> None:
        while True:
            started = time.monotonic()
            with contextlib.suppress(OSError):
                await call(tls)
            await asyncio.sleep(max(0, started + _RETRY_SECONDS - time.monotonic()))

    await asyncio.gather(*(client() for _ in range(clients)))


async def _exchange(running: Running, tls: ssl.SSLContext, parts: Iterable[bytes]) -> None:
    """Send the parts of a request over a new connection with pauses between, and read the answer."""
    address = urlsplit(running.url)
    reader, writer = await asyncio.open_connection(
        address.hostname, address.port, ssl=tls, local_addr=(OTHER_ADDRESS, 0)
    )
    try:
        answer = asyncio.ensure_future(reader.read(1))
        for part in parts:
            writer.write(part)
            await writer.drain()
            if answer.done():
                break
            await asyncio.sleep(_DRIP_SECONDS if len(part) == 1 else 0)
        await answer
    finally:
        writer.transport.abort()


def _bytes_of(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1] for at in range(len(data)))


def _upload(running: Running, body: bytes) -> bytes:
    return _head(running, "upload", f"multipart/form-data; boundary={BOUNDARY}", len(body))


def _head(running: Running, endpoint: str, kind: str, length: int) -> bytes:
    return (
        f"POST /1.0/{endpoint} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {running.key}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    ).encode()


def quiet_account(running: Running, source: str, seconds: float) -> dict[str, list[float]]:
    """The seconds that each call of the quiet account takes, in turns."""
    upload, tls = form(picture("small.png").read_bytes()), running.tls
    form_type, json_type = f"multipart/form-data; boundary={BOUNDARY}", "application/json"
    calls = {
        "health": ("GET", "/healthz", None, ""),
        "account": ("GET", "/1.0/account", None, ""),
        "upload": ("POST", "/1.0/upload", upload, form_type),
        "fetch": ("POST", "/1.0/fetch", json.dumps({"url": source}).encode(), json_type),
    }
    address, taken = urlsplit(running.url), {name: list[float]() for name in calls}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, (method, path, body, kind) in calls.items():
            started = time.monotonic()
            connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=tls)
            headers = {"Authorization": f"Bearer {running.key}", "Content-Type": kind}
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status == 200, data
            connection.close()
            taken[name].append(time.monotonic() - started)
    return taken


if __name__ == "__main__":
    sys.exit(main())
