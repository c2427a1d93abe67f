"""The processing result: what is told of pictures, calls and failures."""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import imgsvc_core
from tests.http.calls import assert_failure, fetch, upload
from tests.http.interface.tables import IMAGE_FIELDS, JPEG_FIELDS, TEMPORARY_FIELDS
from tests.http.receivers import receiving
from tests.http.service_process import Service
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def service(notifying_service: Service) -> Service:
    return notifying_service


def assert_described(image: dict[str, Any], fields: Mapping[str, tuple[type, ...]]) -> None:
    """These fields and no others, each of its type."""
    fields = {**fields, **JPEG_FIELDS} if image["format"] == "jpg" else fields
    assert set(image) == set(fields)
    for name, kinds in fields.items():
        assert type(image[name]) in kinds, name


@pytest.fixture
def portrait() -> bytes:
    return Path("examples/pictures/portrait.jpg").read_bytes()


class TestResult:
    async def test_the_fields_of_success(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """Everything that is told of the call, and of the input by the way it came."""
        started = time.perf_counter()
        reply = await upload(client, photo, {"resize": {"width": 48}}, name="café 1.jpg")
        took = 1000 * (time.perf_counter() - started)
        document = reply.json
        assert set(document) == {"success", "code", "id", "input", "output", "timing"}
        assert (document["success"], document["code"]) == (True, 200)
        assert str(uuid.UUID(document["id"])) == document["id"]
        assert document["input"]["name"] == "café 1.jpg"
        assert document["input"]["bytes"] == len(photo)
        assert re.fullmatch("[0-9a-f]{64}", document["output"]["sha256"])
        assert document["output"]["url"].startswith("https://")
        assert set(document["timing"]) == {"fetch", "decode", "process", "encode", "store"}
        assert 0 < sum(document["timing"].values()) < took

    @pytest.mark.parametrize("kind", ["jpeg", "gif_animated", "png_alpha"])
    @pytest.mark.parametrize("way", ["json", "binary", "webhook"])
    async def test_the_fields_of_input_and_output(
        self, way: str, kind: str, client: aiohttp.ClientSession
    ) -> None:
        """The same by every way, whatever is known besides; faces are not told where nobody asks for them."""
        picture = getattr(encoded, kind)().data
        if way == "webhook":
            async with receiving() as receiver:
                assert (await upload(client, picture, {"webhook": {"url": f"{receiver.url}/"}})).status == 202
                result = (await receiver.arrived(1))[0].json
        else:
            reply = await upload(client, picture, {"response": {"mode": way}})
            result = reply.metadata if way == "binary" else reply.json
        assert_described(result["input"], IMAGE_FIELDS)
        assert_described(result["output"], TEMPORARY_FIELDS)

    async def test_what_is_told_of_a_picture_is_true(
        self, client: aiohttp.ClientSession, source: str
    ) -> None:
        """The facts of input and output are those of their files."""
        output = {"quality": 60, "encoding": "progressive"}
        result = (await fetch(client, f"{source}/jpeg_oriented", output=output)).json
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

    @pytest.mark.parametrize("mode", ["json", "binary"])
    @pytest.mark.parametrize(
        "request_",
        [
            {"crop": {"mode": "face"}},
            {"resize": {"width": 80, "height": 80, "mode": "fit", "gravity": "faces"}},
        ],
    )
    async def test_faces_are_told_where_they_were_asked_for(
        self, request_: dict[str, Any], mode: str, client: aiohttp.ClientSession, portrait: bytes
    ) -> None:
        """Boxes and scores of faces come with the output."""
        reply = await upload(client, portrait, {**request_, "response": {"mode": mode}})
        result = reply.metadata if mode == "binary" else reply.json
        assert set(result["output"]["faces"][0]) == {"left", "top", "width", "height", "score"}
        assert "faces" not in result["input"]

    @pytest.mark.parametrize("way", ["json", "binary", "webhook"])
    async def test_facts_of_pixels_are_told_where_they_were_asked_for(
        self, way: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """All facts together fit into the header of a binary answer."""
        output = {"format": "png", "facts": list(imgsvc_core.FACTS)}
        asked = {"resize": {"width": 90}, "output": output}
        if way == "webhook":
            async with receiving() as receiver:
                await upload(client, photo, {**asked, "webhook": {"url": f"{receiver.url}/"}})
                told = (await receiver.arrived(1))[0].json
        else:
            reply = await upload(client, photo, {**asked, "response": {"mode": way}})
            told = reply.metadata if way == "binary" else reply.json
        assert told["output"]["facts"] == imgsvc_core.process(photo, asked).output.facts
        assert "facts" not in told["input"]
        assert "facts" not in (await upload(client, photo)).json["output"]

    async def test_no_faces_are_told_where_nobody_asked(
        self, client: aiohttp.ClientSession, portrait: bytes
    ) -> None:
        """Not even of a picture that has some."""
        assert "faces" not in (await upload(client, portrait)).json["output"]

    async def test_the_fields_of_failure(self, client: aiohttp.ClientSession) -> None:
        """A failure has success, code, id and message, and a stable name."""
        failure = assert_failure(await upload(client, b"no image"), 422, "unsupported_format")
        assert set(failure) == {"success", "code", "id", "error", "message"}
