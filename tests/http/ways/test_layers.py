"""Layers over HTTP: pictures are uploaded ones, never files of the machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.http.calls import assert_failure, call, upload
from tests.http.ways.conftest import Site
from tests.http.ways.web_origin import Page
from tests.support import encoded

pytestmark = pytest.mark.asyncio

SHAPE = {"shape": {"kind": "ellipse", "color": "FF3300"}, "width": "40%", "height": 20}


async def test_layers_lie_over_uploads_and_pictures_by_url(site: Site) -> None:
    photo = encoded.jpeg().data
    async with site.service.client() as client:
        made = await upload(client, encoded.png_alpha().data, path="/1.0/watermarks")
        layers = [SHAPE, {"picture": {"id": made.json["watermark"]["id"]}, "width": "50%", "blend": "screen"}]
        plain, laid = [
            await upload(client, photo, {**request, "response": {"mode": "binary"}})
            for request in ({}, {"layers": layers})
        ]
    assert laid.status == 200, laid.metadata
    assert laid.body != plain.body
    by_url = await site.get(site.signer.url("photos/photo.jpg", {"layers": layers}))
    assert by_url.status == 200, by_url.body
    assert by_url.body == laid.body


@pytest.mark.parametrize(
    ("layers", "path"),
    [
        ([SHAPE, {"picture": {"id": "nobody's"}}], "layers[1].picture.id"),
        ([{"picture": {"source": "FILE"}}], "layers[0].picture.source"),
        ([{"picture": {"source": "file://FILE"}}], "layers[0].picture.source"),
        ([{"picture": {"source": "http://127.0.0.1/a.png"}}], "layers[0].picture.source"),
        ([{"gradient": {"from": "000", "to": "fff"}}] * 101, "layers"),
    ],
)
async def test_what_is_refused_names_the_layer_and_makes_nothing(
    layers: list[dict[str, Any]], path: str, site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "secret.png"
    file.write_bytes(encoded.png().data)
    layers = json.loads(json.dumps(layers).replace("FILE", str(file)))
    page = f"{site.web.url}/layered.jpg"
    site.web.pages["/layered.jpg"] = Page(encoded.jpeg().data)
    used = await site.used()
    async with site.service.client() as client:
        replies = [await upload(client, encoded.jpeg().data, {"layers": layers})]
        for more in ({}, {"webhook": {"url": "https://hooks.example/a"}}):
            body = {"url": page, "layers": layers, **more}
            replies.append(await call(client, "POST", "/1.0/fetch", json=body))
    for reply in replies:
        assert_failure(reply, 422, "invalid_parameter")
        assert [error["path"] for error in reply.json["errors"]] == [path]
    if len(layers) < 100:
        by_url = await site.get(site.signer.url("photos/photo.jpg", {"layers": layers}))
        assert_failure(by_url, 422, "invalid_parameter")
        assert [error["path"] for error in by_url.json["errors"]] == [path]
    assert await site.used() == used


async def test_texts_are_written_by_the_fonts_of_the_service(site: Site) -> None:
    pytest.importorskip("fontpkg_inter")
    layers = [{"text": {"text": "Hi <b>", "size": "20%"}, "gravity": "top"}]
    plain, written = [
        await site.get(site.signer.url("photos/photo.jpg", request)) for request in ({}, {"layers": layers})
    ]
    assert (plain.status, written.status) == (200, 200), written.body
    assert plain.body != written.body
    for text, key in (
        ({"text": "a", "size": 9, "font": "Arial"}, "font"),
        ({"text": "\U00013000", "size": 9}, "text"),
    ):
        reply = await site.get(site.signer.url("photos/photo.jpg", {"layers": [{"text": text}]}))
        assert_failure(reply, 422, "invalid_parameter")
        assert [error["path"] for error in reply.json["errors"]] == [f"layers[0].text.{key}"]
