"""The body of a processing request."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from tests.http.calls import assert_failure, call, fetch, upload
from tests.http.interface.tables import FILTERS

pytestmark = pytest.mark.asyncio(loop_scope="module")


class TestRequest:
    @pytest.mark.parametrize(
        ("resize", "size"),
        [({"width": 48}, (48, 32)), ({"height": 16}, (24, 16)), ({"width": 48, "height": 16}, (24, 16)),
         ({"width": 192, "height": 192}, (192, 128)), ({"width": 192, "upscale": False}, (96, 64)),
         ({"width": 30, "height": 30, "mode": "fit"}, (30, 30)),
         ({"width": 30, "height": 30, "mode": "fill"}, (30, 30)),
         ({"width": 30, "height": 30, "mode": "stretch"}, (30, 30))],
    )  # fmt: skip
    async def test_resize_takes_width_and_height(
        self,
        resize: dict[str, Any],
        size: tuple[int, int],
        client: aiohttp.ClientSession,
        source: str,
    ) -> None:
        """One or both of them, in pixels; the aspect stays unless another mode is asked for."""
        output = (await fetch(client, f"{source}/jpeg", resize=resize)).json["output"]
        assert (output["width"], output["height"]) == size

    @pytest.mark.parametrize(
        ("operation", "name", "low", "high", "step"),
        [("scale", "size", 0.01, 10, 0.001), ("rotate", "angle", -360, 360, 0.001),
         ("crop", "padding", 0, 5, 0.001), ("output", "quality", 1, 100, 1), ("output", "effort", 0, 9, 1)],
    )  # fmt: skip
    async def test_ranges_of_operations(
        self,
        operation: str,
        name: str,
        low: float,
        high: float,
        step: float,
        client: aiohttp.ClientSession,
        photo: bytes,
    ) -> None:
        """Both ends of each range are allowed, and nothing just outside."""
        more = {"crop": {"mode": "face"}, "output": {"format": "webp"}}.get(operation, {})
        for value in (low, high):
            reply = await upload(client, photo, {operation: {**more, name: value}})
            assert reply.status == 200, reply.json
        for wrong in (low - step, high + step):
            reply = await upload(client, photo, {operation: {**more, name: wrong}})
            failure = assert_failure(reply, 422, "invalid_parameter", f"within {low} to {high} range")
            assert [error["path"] for error in failure["errors"]] == [f"{operation}.{name}"]

    async def test_the_order_of_keys_means_nothing(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """The same request in another order gives the same picture."""
        request = {"adjust": {"contrast": 30, "hue": 20}, "flip": {"vertical": True}, "filter": FILTERS}
        backwards = {"filter": dict(reversed(FILTERS.items())), **dict(reversed(request.items()))}
        forth, back = [await upload(client, photo, document) for document in (request, backwards)]
        assert forth.json["output"]["sha256"] == back.json["output"]["sha256"]

    @pytest.mark.parametrize(
        ("request_", "path", "word"),
        [({"rezise": {"width": 1}}, "rezise", "'resize'"),
         ({"filter": {"pixelate": {"value": 1}}}, "filter.pixelate", "'pixellate'"),
         ({"adjust": {"brigthness": 1}}, "adjust.brigthness", "'brightness'"),
         ({"resize": {"width": 1, "depth": 1}}, "resize.depth", "width"),
         ({"filter": {}, "stylize": {}}, "stylize", "only one"),
         ({"resize": []}, "resize", "object"), ({"adjust": {"hue": 1e999}}, "adjust.hue", "integer"),
         ({"scale": {"size": 1e999}}, "scale.size", "float")],
    )  # fmt: skip
    async def test_nothing_is_dropped_or_clamped(
        self, request_: dict[str, Any], path: str, word: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Unknown keys, infinities and wrong types are errors, and the likely meant key is named."""
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("data", json.dumps(request_).replace("Infinity", "1e999"))
        form.add_field("file", photo, filename="photo.jpg")
        reply = await call(client, "POST", "/1.0/upload", data=form)
        failure = assert_failure(reply, 422, "invalid_parameter", word)
        assert [error["path"] for error in failure["errors"]] == [path]

    @pytest.mark.parametrize("body", [b"", b"{", b"[1,]", b'{"url": 1, "url": 2}', b"\xff\xfe"])
    async def test_a_body_that_is_no_json_is_400(self, body: bytes, client: aiohttp.ClientSession) -> None:
        """Malformed JSON is told from wrong parameters."""
        headers = {"Content-Type": "application/json"}
        reply = await call(client, "POST", "/1.0/fetch", data=body, headers=headers)
        assert_failure(reply, 400, "invalid_json", "valid JSON")

    @pytest.mark.parametrize(
        "number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "-" + "9" * 5000]
    )
    @pytest.mark.parametrize("way", ["fetch", "upload"])
    async def test_numbers_outside_of_every_range_are_named(
        self, way: str, number: str, client: aiohttp.ClientSession
    ) -> None:
        """NaN, infinities and integers of any length are wrong parameters, all told at once."""
        text = (
            '{"adjust": {"hue": #, "opacity": #}, "scale": {"size": #}, "limits": {"seconds": #, "frames": #}'
            ', "webhook": {"url": #, "delay": #}, "store": {"provider": "aws", "key": #}, "filter": #'
            ', "#": 1%s}'
        ).replace("#", number)
        if way == "fetch":
            body = text % (', "url": #, "headers": {"a": #}'.replace("#", number))
            reply = await call(
                client, "POST", "/1.0/fetch", data=body, headers={"Content-Type": "application/json"}
            )
        else:
            form = aiohttp.FormData(default_to_multipart=True)
            form.add_field("data", text % "")
            form.add_field("file", b"x", filename="photo.jpg")
            reply = await call(client, "POST", "/1.0/upload", data=form)
        failure = assert_failure(reply, 422, "invalid_parameter")
        told = {error["path"]: error["message"] for error in failure["errors"]}
        assert {
            "adjust.hue", "adjust.opacity", "scale.size", "limits.seconds", "limits.frames", "webhook.url",
            "webhook.delay", "store.key", "filter",
        } <= told.keys()  # fmt: skip
        assert ({"url", "headers"} <= told.keys()) is (way == "fetch")
        for message in told.values():
            assert len(message) < 400
        assert "got" in told["adjust.hue"]

    @pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "foo", "gzip, gzip"])
    @pytest.mark.parametrize("path", ["/1.0/fetch", "/1.0/upload"])
    async def test_encoded_bodies_are_415(
        self, path: str, encoding: str, client: aiohttp.ClientSession
    ) -> None:
        """Bodies are sent as they are."""
        kind = "application/json" if path == "/1.0/fetch" else "multipart/form-data; boundary=x"
        headers = {"Content-Type": kind, "Content-Encoding": encoding}
        reply = await call(client, "POST", path, data=b"{}", headers=headers)
        assert_failure(reply, 415, "unsupported_encoding", "Content-Encoding")
        assert reply.headers["Connection"] == "close"
        assert reply.headers["Accept-Encoding"] == "identity"

    @pytest.mark.parametrize("url", ["github:octocat", "gravatar:a@b.example"])
    async def test_headers_do_not_go_with_profile_pictures(
        self, url: str, client: aiohttp.ClientSession
    ) -> None:
        """Headers would reach a platform of the service's choice, with its own token."""
        reply = await fetch(client, url, headers={"X-A": "1"})
        failure = assert_failure(reply, 422, "invalid_parameter", "social profile picture")
        assert [error["path"] for error in failure["errors"]] == ["headers"]

    async def test_forms_of_watermarks_need_a_file_alone(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A document is ignored, as are all parts that a form does not need."""
        reply = await upload(client, photo, {"opacity": 0.5}, path="/1.0/watermarks")
        assert reply.status == 201, reply.json

    @pytest.mark.parametrize("body", [b"[]", b"null", b'"x"', b"1"])
    async def test_the_body_is_an_object(self, body: bytes, client: aiohttp.ClientSession) -> None:
        """Other JSON values are no request."""
        headers = {"Content-Type": "application/json; charset=utf-8"}
        reply = await call(client, "POST", "/1.0/fetch", data=body, headers=headers)
        assert_failure(reply, 422, "invalid_parameter", "JSON object")

    async def test_response_modes_are_json_and_binary(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Other modes are errors; null is as if no mode was given."""
        assert (await upload(client, photo, {"response": {"mode": None}})).json["success"] is True
        for mode in ("xml", 1, "Binary"):
            reply = await upload(client, photo, {"response": {"mode": mode}})
            assert_failure(reply, 422, "invalid_parameter", "Response 'mode' parameter must be one of")
