"""Bodies of requests that are compressed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

import aiohttp
import pytest

from tests.http.calls import assert_failure, call
from tests.support import encoded

pytestmark = pytest.mark.asyncio

Compress = Callable[[bytes], bytes]


def bare(data: bytes) -> bytes:
    """Deflate without the header that it should have."""
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packing.compress(data) + packing.flush()


WAYS = pytest.mark.parametrize(
    ("encoding", "compress"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", bare), ("Identity", bytes)],
    ids=["gzip", "deflate", "bare", "identity"],
)
FORM = {"Content-Type": "multipart/form-data; boundary=x"}
PICTURE = encoded.jpeg().data


def form(*parts: tuple[str, bytes]) -> bytes:
    lines = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), data)
        for name, data in parts
    )
    return lines + b"--x--\r\n"


@WAYS
async def test_forms_are_unpacked(encoding: str, compress: Compress, client: aiohttp.ClientSession) -> None:
    document = json.dumps({"resize": {"width": 20}, "output": {"format": "png"}}).encode()
    body = compress(form(("file", PICTURE), ("data", document)))
    headers = {**FORM, "Content-Encoding": encoding}
    reply = await call(client, "POST", "/1.0/upload", data=body, headers=headers)
    assert (reply.status, reply.json["input"]["bytes"]) == (200, len(PICTURE))
    assert (reply.json["output"]["width"], reply.json["output"]["format"]) == (20, "png")


@WAYS
async def test_json_is_unpacked(encoding: str, compress: Compress, client: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    body = compress(json.dumps({"url": "x" * 300_000}).encode())
    reply = await call(client, "POST", "/1.0/fetch", data=body, headers=headers)
    assert_failure(reply, 422, "invalid_parameter", "Fetch 'url' parameter")


@pytest.mark.parametrize(
    "spoil",
    [lambda packed: packed[:-1], lambda packed: packed + b"x", lambda packed: packed[:-8] + bytes(8)],
    ids=["short", "long", "checksum"],
)
@pytest.mark.parametrize("path", ["/1.0/fetch", "/1.0/upload"])
async def test_what_is_not_encoded_as_it_says_is_refused(
    path: str, spoil: Compress, client: aiohttp.ClientSession
) -> None:
    kind = FORM if path == "/1.0/upload" else {"Content-Type": "application/json"}
    body = form(("file", PICTURE)) if path == "/1.0/upload" else b'{"url": "http://a.example/"}'
    headers = {**kind, "Content-Encoding": "gzip"}
    reply = await call(client, "POST", path, data=spoil(gzip.compress(body)), headers=headers)
    assert_failure(reply, 400, "broken_body", "Content-Encoding")


async def test_the_limit_of_a_body_is_that_of_what_it_unpacks_to(client: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    body = gzip.compress(b'{"url": "' + b" " * 1_100_000)
    assert len(body) < 10_000
    reply = await call(client, "POST", "/1.0/fetch", data=body, headers=headers)
    assert_failure(reply, 413, "body_too_large", "1,000,000 bytes")
