"""Calls to a running service, and what has to be true of every answer."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping
from typing import Any

import aiohttp
import attrs
from multidict import CIMultiDictProxy
from PIL import Image
from yarl import URL

RATE_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


@attrs.frozen
class Reply:
    """An answer that was read whole."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes = attrs.field(repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def metadata(self) -> Any:
        """What a binary answer carries in its header."""
        text = self.headers["X-Svc-Metadata"]
        assert text.isascii()
        assert self.headers["X-Svc-Meta"] == text
        return json.loads(text)

    @property
    def picture(self) -> Image.Image:
        return Image.open(io.BytesIO(self.body))


async def call(client: aiohttp.ClientSession, method: str, path: str | URL, **options: Any) -> Reply:
    """Call, and check what holds for every answer."""
    async with client.request(method, path, **options) as response:
        reply = Reply(response.status, response.headers, await response.read())
    for name in RATE_HEADERS:
        assert int(reply.headers[name]) >= 0, f"{name} of {method} {path}"
    if reply.headers.get("Content-Type", "").startswith("application/json") and method != "HEAD":
        document = reply.json
        if not {"openapi", "thumbor"} & document.keys():
            assert document["success"] is (reply.status < 400)
            assert document["code"] == reply.status
    return reply


async def fetch(client: aiohttp.ClientSession, url: str, **parts: Any) -> Reply:
    return await call(client, "POST", "/1.0/fetch", json={"url": url, **parts})


async def upload(
    client: aiohttp.ClientSession,
    picture: bytes,
    document: Mapping[str, Any] | None = None,
    *,
    name: str | None = "photo.png",
    headers: Mapping[str, str] | None = None,
    path: str = "/1.0/upload",
) -> Reply:
    form = aiohttp.FormData(quote_fields=False)
    form.add_field("file", io.BytesIO(picture), filename=name, content_type="application/octet-stream")
    if document is not None:
        form.add_field("data", json.dumps(document), content_type="application/json")
    return await call(client, "POST", path, data=form, headers=headers)


def assert_failure(reply: Reply, status: int, slug: str, *words: str) -> dict[str, Any]:
    """An error in the shape of all errors, with these words in its message."""
    document: dict[str, Any] = reply.json
    assert (reply.status, document["code"], document["error"]) == (status, status, slug), document
    assert document["success"] is False
    assert uuid.UUID(document["id"])
    for word in words:
        assert word in document["message"]
    if "errors" in document:
        first = document["errors"][0]["message"]
        assert first.startswith(document["message"]), "the message is what the first wrong parameter must be"
        assert ", got " not in document["message"]
    return document


async def used(client: aiohttp.ClientSession) -> int:
    """How much of the quota is used."""
    return int((await call(client, "GET", "/1.0/account")).json["quota"]["used"])
