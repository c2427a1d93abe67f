"""Layers that nobody can draw: each is one sentence that names the layer, and the service goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.calls import assert_failure, call, upload
from tests.http.ways.conftest import Site
from tests.support import encoded

pytestmark = pytest.mark.asyncio

PHOTO = encoded.jpeg().data
FADE = {"gradient": {"from": "000", "to": "fff"}}
DISC = {"shape": {"kind": "ellipse", "color": "FF3300"}}


def text(**more: Any) -> dict[str, Any]:
    return {"text": {"text": "a", "size": 20, **more}}


WRONG = [
    ([FADE, text(text="a" * 900_000)], "layers[1].text.text"),
    ([FADE] * 1000, "layers"),
    ([text(size="0%")], "layers[0].text.size"),
    ([text(size=0)], "layers[0].text.size"),
    ([FADE, text(size=10**6)], "layers[1].text.size"),
    ([FADE, {**text(), "width": "0%"}], "layers[1].width"),
    ([FADE, {**DISC, "width": 10**6}], "layers[1].width"),
    ([{**DISC, "width": 65_535, "scale": 10}], "layers[0].scale"),
    ([text(text="a\x07b")], "layers[0].text.text"),
    ([text(text="a\0b")], "layers[0].text.text"),
    ([FADE, text(text="a\u202eb")], "layers[1].text.text"),
    ([text(text="\u200b\u200d")], "layers[0].text.text"),
    ([text(font="Arial")], "layers[0].text.font"),
    ([FADE, {"text": {"spans": [{"text": "a"}, {"text": "b", "font": "No"}], "size": 9}}],
     "layers[1].text.spans[1].font"),
    ([text(text="\U00013000")], "layers[0].text.text"),
    ([{"text": {"text": "a" * 2000, "size": 20, "letter_spacing": 1000}}], "layers[0].text.text"),
]  # fmt: skip
TOO_LARGE = [
    ([FADE, {**DISC, "width": 65_535, "height": 65_535}], "layers[1]"),
    ([text(), text(text="W" * 2000, size=4096)], "layers[1].text.size"),
    ([FADE, {"text": {"spans": [{"text": "W" * 2000}] * 50, "size": 100}}], "layers[1].text.size"),
]


@pytest.mark.parametrize(
    ("layers", "path", "slug"),
    [
        *((layers, path, "invalid_parameter") for layers, path in WRONG),
        *((layers, path, "memory_limit_exceeded") for layers, path in TOO_LARGE),
    ],
)
async def test_a_layer_that_cannot_be_drawn_is_named(
    layers: list[dict[str, Any]], path: str, slug: str, site: Site
) -> None:
    pytest.importorskip("fontpkg_inter")
    used = await site.used()
    async with site.service.client() as client:
        reply = await upload(client, PHOTO, {"layers": layers})
        assert_failure(reply, 422, slug)
        assert [error["path"] for error in reply.json["errors"]] == [path]
        assert len(reply.json["errors"][0]["message"]) < 3000
        assert await site.used() == used
        assert (await upload(client, PHOTO, {"layers": [FADE, DISC]})).status == 200


async def test_more_layers_or_letters_than_are_read_are_refused_as_bodies(site: Site) -> None:
    async with site.service.client() as client:
        many = await upload(client, PHOTO, {"layers": [FADE] * 10_000})
        assert_failure(many, 400, "invalid_json", "more than 10,000 keys and values")
        long = await upload(client, PHOTO, {"layers": [text(text="a" * 10**6)]})
        assert_failure(long, 413, "body_too_large", "at most 1,000,000 bytes")
        assert (await upload(client, PHOTO, {"layers": [FADE, DISC]})).status == 200


async def test_a_hundred_layers_are_drawn(site: Site) -> None:
    layer = {**DISC, "gravity": "top", "width": 9, "height": 9, "padding": 2, "opacity": 0.5, "rotation": 9}
    async with site.service.client() as client:
        assert (await upload(client, PHOTO, {"layers": [layer] * 100})).status == 200
        more = {"x": 1, "y": 1, "shadow": {"x": 1, "y": 1, "blur": 1, "color": "000"}, "blend": "normal"}
        more |= {"radius": 1, "upscale": False, "scale": 1, "repeat": {"spacing": 1, "stagger": 0}}
        reply = await upload(client, PHOTO, {"layers": [layer | more] * 100})
    assert_failure(reply, 422, "invalid_parameter", "at most 2000 values")
    assert [error["path"] for error in reply.json["errors"]] == ["layers"]


@pytest.mark.parametrize("written", ["<b>b</b>", "<span size='9999999'>b</span>", "&amp;b", "<", "&#0;"])
async def test_markup_is_written_as_it_is(written: str, site: Site) -> None:
    pytest.importorskip("fontpkg_inter")
    async with site.service.client() as client:
        replies = [
            await upload(client, PHOTO, {"layers": [text(text=letters)], "response": {"mode": "binary"}})
            for letters in (written, "b")
        ]
    assert [reply.status for reply in replies] == [200, 200]
    assert replies[0].body != replies[1].body


async def test_letters_without_a_font_are_boxes_if_asked_for(site: Site) -> None:
    pytest.importorskip("fontpkg_inter")
    async with site.service.client() as client:
        reply = await upload(client, PHOTO, {"layers": [text(text="\U00013000", missing="box")]})
    assert reply.status == 200, reply.body


async def test_presets_with_layers_name_no_other_presets(site: Site) -> None:
    async with site.service.client() as client:
        for named in ("circle", ["circle"]):
            body = {"preset": named, "layers": [DISC]}
            reply = await call(client, "PUT", "/1.0/presets/circle", json=body)
            assert_failure(reply, 422, "invalid_parameter")
            assert [error["path"] for error in reply.json["errors"]] == ["preset"]
