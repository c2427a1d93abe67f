"""Previews over HTTP: a source is sent once, and each preview names it."""

from __future__ import annotations

import io
from typing import Any

import aiohttp
import pytest
from PIL import Image

import imgsvc_core as imgsvc
from tests.http.calls import Reply, assert_failure, call, upload
from tests.http.playground.page import PICTURES
from tests.http.service_process import Service
from tests.http.sources import serving
from tests.support import encoded

pytestmark = pytest.mark.asyncio

PHOTO = (PICTURES / "portrait.jpg").read_bytes()
BINARY = {"response": {"mode": "binary", "plan": True}}


async def keep(client: aiohttp.ClientSession, data: bytes = PHOTO, name: str = "mine.jpg") -> str:
    reply = await upload(client, data, name=name, path="/playground/sources")
    assert reply.status == 200
    assert reply.json["source"]["name"] == name
    id_: str = reply.json["source"]["id"]
    return id_


async def preview(
    client: aiohttp.ClientSession, source: str, request: dict[str, Any], window: object = None
) -> Reply:
    body = {"request": {**request, **BINARY}, **({} if window is None else {"window": window})}
    return await call(client, "POST", f"/playground/previews/{source}", json=body)


async def quota_used(client: aiohttp.ClientSession) -> int:
    used: int = (await call(client, "GET", "/1.0/account")).json["quota"]["used"]
    return used


async def test_a_preview_is_the_result_of_an_upload_and_nothing_is_stored(
    client: aiohttp.ClientSession, service: Service
) -> None:
    request = {"resize": {"width": 100}, "filter": {"sepia": {"value": 60}}}
    uploaded = await upload(client, PHOTO, {**request, **BINARY})
    id_, used = await keep(client), await quota_used(client)
    stored = list((service.state / "temporary").iterdir())
    for _ in range(2):
        made = await preview(client, id_, request)
        assert made.body == uploaded.body
        for facts in ("input", "output"):
            same = {"name", "url", "expires_at"}
            assert {**made.metadata[facts], **dict.fromkeys(same)} == {
                **uploaded.metadata[facts],
                **dict.fromkeys(same),
            }
        assert made.metadata["plan"] == uploaded.metadata["plan"]
    assert "url" not in made.metadata["output"]
    assert list((service.state / "temporary").iterdir()) == stored
    assert await quota_used(client) == used + 2


async def test_a_picture_is_reduced_to_the_window_and_its_facts_are_its_own(
    client: aiohttp.ClientSession,
) -> None:
    id_ = await keep(client)
    whole = await preview(client, id_, {"adjust": {"exposure": 20}})
    reduced = await preview(client, id_, {"adjust": {"exposure": 20}}, {"width": 300, "height": 128})
    assert reduced.picture.size == (100, 128)
    assert len(reduced.body) < len(whole.body) / 2
    assert reduced.metadata["output"] == whole.metadata["output"]
    assert reduced.metadata["output"]["bytes"] == len(whole.body)
    enough = await preview(client, id_, {"adjust": {"exposure": 20}}, {"width": 400, "height": 512})
    assert enough.body == whole.body


async def test_what_browsers_do_not_show_becomes_png_in_a_window(client: aiohttp.ClientSession) -> None:
    window = {"width": 4000, "height": 4000}
    shown = await preview(client, "coffee.heic", {}, window)
    assert shown.metadata["output"]["format"] == "heic"
    assert shown.headers["Content-Type"] == "image/png"
    itself = await preview(client, "coffee.heic", {})
    assert imgsvc.inspect(itself.body).format == "heic"
    pixels = imgsvc.process(itself.body, {"output": {"format": "png"}}).data
    assert list(shown.picture.get_flattened_data()) == list(
        Image.open(io.BytesIO(pixels)).get_flattened_data()
    )


async def test_a_reduced_picture_stays_transparent(client: aiohttp.ClientSession) -> None:
    made = await preview(client, "emblem.png", {}, {"width": 50, "height": 50})
    assert imgsvc.inspect(made.body).alpha
    assert max(made.picture.size) == 50


async def test_animations_are_not_reduced(client: aiohttp.ClientSession) -> None:
    made = await preview(client, "day.gif", {}, {"width": 20, "height": 20})
    assert made.metadata["output"]["frames"] == imgsvc.inspect(made.body).frames > 1
    assert made.picture.size == (made.metadata["output"]["width"], made.metadata["output"]["height"])


async def test_a_source_belongs_to_its_key(client: aiohttp.ClientSession, service: Service) -> None:
    id_ = await keep(client)
    for method, path in (("GET", "sources"), ("POST", "previews")):
        async with service.client(key=service.new_key()) as other:
            reply = await call(other, method, f"/playground/{path}/{id_}", json={"request": {}})
            assert_failure(reply, 404, "not_found", "source")
        async with service.client(key="") as stranger:
            reply = await call(stranger, method, f"/playground/{path}/{id_}", json={"request": {}})
            assert_failure(reply, 401, "unauthorized")


async def test_a_source_is_fetched_once_and_given_back(client: aiohttp.ClientSession) -> None:
    fetches: list[str] = []

    async def answer(request: aiohttp.web.Request) -> aiohttp.web.Response:
        fetches.append(request.path)
        return aiohttp.web.Response(body=PHOTO, content_type="image/jpeg")

    async with serving({"/photo.jpg": answer}) as url:
        kept = (await call(client, "POST", "/playground/sources", json={"url": f"{url}/photo.jpg"})).json
    assert kept["source"]["name"] == "photo.jpg"
    for _ in range(2):
        assert (await preview(client, kept["source"]["id"], {"resize": {"width": 50}})).status == 200
    original = await call(client, "GET", f"/playground/sources/{kept['source']['id']}")
    assert original.body == PHOTO
    assert original.headers["Content-Type"] == "image/jpeg"
    assert "sandbox" in original.headers["Content-Security-Policy"]
    assert len(fetches) == 1


async def test_only_pictures_are_kept(client: aiohttp.ClientSession, service: Service) -> None:
    before = sorted((service.state / "temporary-sources").iterdir())
    reply = await upload(client, b"#!/bin/sh", name="script.jpg", path="/playground/sources")
    assert_failure(reply, 422, "unsupported_format")
    reply = await upload(client, PHOTO[:3000], path="/playground/sources")
    assert_failure(reply, 422, "corrupt_image")
    reply = await call(client, "POST", "/playground/sources", json={"url": "ftp://example.org/a.jpg"})
    assert_failure(reply, 422, "invalid_parameter")
    assert sorted((service.state / "temporary-sources").iterdir()) == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "'request'"),
        ({}, "'request'"),
        ({"request": 3}, "'request'"),
        ({"request": {}, "window": 5}, "'window'"),
        ({"request": {}, "window": {"width": 10}}, "'window'"),
        ({"request": {}, "window": {"width": 10, "height": True}}, "'window'"),
        ({"request": {}, "window": {"width": 0, "height": 10}}, "'window'"),
        ({"request": {}, "window": {"width": 10, "height": 16_385}}, "'window'"),
        ({"request": {"resize": {"width": -1}}}, "width"),
    ],
)
async def test_wrong_bodies_are_refused(body: Any, words: str, client: aiohttp.ClientSession) -> None:
    reply = await call(client, "POST", "/playground/previews/portrait.jpg", json=body)
    assert_failure(reply, 422, "invalid_parameter", words)


async def test_without_the_binary_mode_the_facts_are_the_answer(client: aiohttp.ClientSession) -> None:
    body = {"request": {"resize": {"width": 64}}}
    facts = (await call(client, "POST", "/playground/previews/portrait.jpg", json=body)).json
    assert facts["output"]["width"] == 64
    assert "plan" not in facts


async def test_a_picture_of_any_name_is_kept(client: aiohttp.ClientSession) -> None:
    id_ = await keep(client, encoded.png().data, "photo.jpg")
    assert id_.endswith(".png")


async def test_facts_tell_where_layers_lie(client: aiohttp.ClientSession) -> None:
    id_ = await keep(client)
    red = {"shape": {"kind": "rectangle", "color": "ff0000"}}
    layers = [
        {**red, "width": 40, "height": 30, "gravity": "bottom-right", "x": 10, "y": "10%"},
        {**red, "width": 40, "height": 20, "x": -5, "y": 7, "rotation": 90, "shadow": {"blur": 9, "x": 50}},
        {"text": {"text": "Words", "size": "10%"}, "gravity": "bottom", "padding": 8},
    ]
    request = {"resize": {"width": 200, "height": 200, "mode": "fit"}, "output": {"format": "png"}}
    made = await preview(client, id_, {**request, "layers": layers}, {"width": 50, "height": 50})
    box, turned, words = made.metadata["layers"]
    assert box == {"left": 150, "top": 150, "width": 40, "height": 30}
    assert turned == {"left": -5, "top": 7, "width": 20, "height": 40}
    assert abs(words["left"] + words["width"] / 2 - 100) <= 1
    assert (words["top"] + words["height"], words["height"]) == (192, 24)
    assert "layers" not in (await preview(client, id_, request)).metadata
