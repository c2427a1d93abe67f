"""The processing result: what is told of pictures, calls and failures."""

from __future__ import annotations

import hashlib
import re
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.http.calls import assert_failure, fetch, upload
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMAGE_FIELDS: dict[str, Any] = {
    "name": str, "format": str, "width": int, "height": int, "colorspace": str, "interlaced": bool,
    "subsample": (str, type(None)), "depth": int, "quality": (int, type(None)), "bytes": int,
}  # fmt: skip
MORE_FIELDS = {"frames": int, "alpha": bool, "orientation": int, "sha256": str}


def assert_described(image: dict[str, Any]) -> None:
    for name, kind in {**IMAGE_FIELDS, **MORE_FIELDS}.items():
        assert isinstance(image[name], kind), name
    assert re.fullmatch("[0-9a-f]{64}", image["sha256"])


class TestResult:
    async def test_the_fields_of_success(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """Everything that is told of the input, the output and the call."""
        reply = await upload(client, photo, {"resize": {"width": 48}}, name="café 1.jpg")
        document = reply.json
        assert (document["success"], document["code"]) == (True, 200)
        assert str(uuid.UUID(document["id"])) == document["id"]
        for image in (document["input"], document["output"]):
            assert_described(image)
        assert document["input"]["name"] == "café 1.jpg"
        assert document["input"]["bytes"] == len(photo)
        assert document["output"]["url"].startswith("https://")
        assert set(document["timing"]) == {"fetch", "decode", "process", "encode", "store"}

    async def test_what_is_told_of_a_picture_is_true(
        self, client: aiohttp.ClientSession, source: str
    ) -> None:
        """The facts of input and output are those of their files."""
        result = (await fetch(client, f"{source}/jpeg_oriented", output={"quality": 60})).json
        given, made = result["input"], result["output"]
        file = encoded.jpeg_oriented().data
        assert (given["width"], given["height"], given["orientation"]) == (96, 64, 6)
        assert (given["bytes"], given["sha256"]) == (len(file), hashlib.sha256(file).hexdigest())
        assert (given["subsample"], given["depth"], given["colorspace"]) == ("4:2:0", 8, "srgb")
        assert given["interlaced"] is False
        assert (made["width"], made["height"], made["orientation"]) == (64, 96, 1)
        assert (made["format"], made["quality"], made["interlaced"]) == ("jpg", 60, True)
        assert (made["frames"], made["alpha"]) == (1, False)

    async def test_every_call_has_its_id(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """Successes and failures are told apart by their ids, in body and header."""
        replies = [await upload(client, body) for body in (photo, photo, b"x", b"x")]
        ids = [reply.json["id"] for reply in replies]
        assert len(set(ids)) == 4
        assert [reply.headers["X-Request-Id"] for reply in replies] == ids

    async def test_faces_are_told_where_they_were_asked_for(self, client: aiohttp.ClientSession) -> None:
        """Boxes and scores of faces come with the output."""
        face = Path("examples/pictures/portrait.jpg").read_bytes()
        found = (await upload(client, face, {"crop": {"mode": "face"}})).json["output"]["faces"]
        assert set(found[0]) == {"left", "top", "width", "height", "score"}

    async def test_the_fields_of_failure(self, client: aiohttp.ClientSession) -> None:
        """A failure has success, code, id and message, and a stable name."""
        failure = assert_failure(await upload(client, b"no image"), 422, "unsupported_format")
        assert set(failure) == {"success", "code", "id", "error", "message"}
