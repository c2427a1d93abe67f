"""Hidden parts over HTTP: by upload, by URL and in presets, with answers that a cache never exchanges."""

from __future__ import annotations

from typing import Any

import pytest

import imgsvc_core as imgsvc
from tests.http.calls import assert_failure, upload
from tests.http.ways.conftest import Site
from tests.process.pictures import pixels_of
from tests.support import encoded

pytestmark = pytest.mark.asyncio

BOX: dict[str, Any] = {"x": 16, "y": 16, "width": 40, "height": 24, "color": "FF00FF"}


async def test_uploads_and_pictures_by_url_hide_the_same(site: Site) -> None:
    photo = encoded.jpeg().data
    request = {"redact": [BOX], "output": {"format": "png"}}
    async with site.service.client() as client:
        sent = await upload(client, photo, {**request, "response": {"mode": "binary"}})
    assert sent.status == 200, sent.metadata
    assert (pixels_of(sent.body)[16:40, 16:56] == (255, 0, 255)).all()
    assert sent.body == imgsvc.process(photo, request).data
    address = site.signer.url("photos/photo.jpg", request)
    first, again = await site.get(address), await site.get(address)
    assert first.body == again.body == sent.body


async def test_a_cache_has_its_own_answer_for_each_box(site: Site) -> None:
    lists = ([], [BOX], [{**BOX, "x": 17}], [{**BOX, "mode": "blur", "color": None}], [BOX, {**BOX, "y": 40}])
    addresses = [
        site.signer.url(
            "photos/photo.jpg",
            {"redact": item, "output": {"format": "png"}} if item else {"output": {"format": "png"}},
        )
        for item in lists
    ]
    bodies = [(await site.get(address)).body for address in (*addresses, *addresses)]
    assert len(set(bodies)) >= len(lists) - 1  # the second and third touch the same blocks
    assert bodies[: len(lists)] == bodies[len(lists) :]
    assert bodies[0] not in bodies[1 : len(lists)]


async def test_a_box_outside_is_an_error_that_names_it(site: Site) -> None:
    asked = [BOX, {**BOX, "x": 9000}]
    async with site.service.client() as client:
        reply = await upload(client, encoded.jpeg().data, {"redact": asked})
    assert_failure(reply, 422, "invalid_parameter")
    assert [error["path"] for error in reply.json["errors"]] == ["redact[1].x"]
    by_url = await site.get(site.signer.url("photos/photo.jpg", {"redact": asked}))
    assert_failure(by_url, 422, "invalid_parameter")
