"""Messages are for people: whatever comes, they hold nothing of the inside of the service."""

from __future__ import annotations

import asyncio
import io
import json
from uuid import uuid4

import aiohttp
import pytest

from tests.http.calls import assert_failure, call, upload
from tests.http.server.test_malformed import ask
from tests.http.service_process import Service
from tests.support import encoded

pytestmark = pytest.mark.asyncio

FORM = {"Content-Type": "multipart/form-data; boundary=x"}


async def test_file_names_that_are_no_utf8_are_labels(client: aiohttp.ClientSession) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a\xff.jpg"\r\n\r\n'
    body = head + encoded.jpeg().data + b"\r\n--x--\r\n"
    reply = await call(client, "POST", "/1.0/upload", data=body, headers=FORM)
    assert (reply.status, reply.json["input"]["name"]) == (200, "a\N{REPLACEMENT CHARACTER}.jpg")


@pytest.mark.parametrize(("name", "subject"), [("logo.png", "Source 'logo.png'"), ("", "The source")])
async def test_a_watermark_is_called_by_its_own_name(
    name: str, subject: str, client: aiohttp.ClientSession
) -> None:
    form = aiohttp.FormData(default_to_multipart=True)
    form.add_field("file", io.BytesIO(b"no picture"), filename=name)
    reply = await call(client, "POST", "/1.0/watermarks", data=form)
    assert assert_failure(reply, 422, "unsupported_format")["message"].startswith(f"{subject} is ")


async def test_a_name_is_reported_with_the_watermark(client: aiohttp.ClientSession) -> None:
    reply = await upload(client, encoded.png().data, name="logo.png", path="/1.0/watermarks")
    assert reply.json["watermark"]["name"] == "logo.png"
    assert (await call(client, "DELETE", f"/1.0/watermarks/{reply.json['watermark']['id']}")).status == 200


@pytest.mark.parametrize("binary", [b"", b"X-Svc-Binary: 1\r\n"])
async def test_bytes_in_headers_that_are_no_text(binary: bytes, service: Service) -> None:
    raw = (
        b"POST /1.0/fetch HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n"
        b"Authorization: Bearer %s\r\nContent-Type: application/x\xff\xfe\r\n%s\r\n{}"
    )
    key = service.key.encode()
    status, headers, body = await asyncio.to_thread(ask, service, raw % (key, binary))
    document = json.loads(headers["X-Svc-Metadata"] if binary else body)
    assert (status, document["error"]) == (415, "unsupported_media_type")
    assert "got 'application/x\ufffd\ufffd'" in document["message"]


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("path", ["/1.0/fetch", "/1.0/keyfiles"])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["arrays", "objects"])
async def test_json_may_be_nested_to_some_depth_only(
    opening: str, closing: str, path: str, once: bool, client: aiohttp.ClientSession
) -> None:
    for levels in (99, 100, 500, *range(900, 1000, 20), 10_000):
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": str(uuid4())} if once else {})}
        body = '{"url":' + opening * levels + "1" + closing * levels + "}"
        reply = await call(client, "POST", path, data=body, headers=headers)
        if levels < 100:
            assert reply.status == 422, reply.json
        else:
            assert_failure(reply, 400, "invalid_json")
