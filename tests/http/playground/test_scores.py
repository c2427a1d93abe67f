"""Size and look of results over HTTP: what the page compares formats by, without their pixels."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

import imgsvc_core as imgsvc
from tests.http.calls import Reply, assert_failure, call, upload, used
from tests.http.playground.page import PICTURES
from tests.http.service_process import Service
from tests.support import encoded

pytestmark = pytest.mark.asyncio

PHOTO = (PICTURES / "portrait.jpg").read_bytes()
WRONG_LOOKS: list[Any] = [70, [], [70] * 9, [0], [100], [True], ["good"], [None], {}]
SMALL = {"resize": {"width": 120}}


async def scored(client: aiohttp.ClientSession, source: str, request: Any, looks: Any = None) -> Reply:
    body = {"request": request, **({} if looks is None else {"looks": looks})}
    return await call(client, "POST", f"/playground/scores/{source}", json=body)


async def keep(client: aiohttp.ClientSession, data: bytes = PHOTO) -> str:
    reply = await upload(client, data, path="/playground/sources")
    return str(reply.json["source"]["id"])


async def test_size_and_look_are_those_of_the_result(client: aiohttp.ClientSession) -> None:
    id_, request = await keep(client), {**SMALL, "output": {"format": "webp", "quality": 60}}
    reply = await scored(client, id_, request)
    made = imgsvc.process(PHOTO, request)
    (point,) = reply.json["points"]
    exact = imgsvc.process(PHOTO, {**SMALL, "output": {"format": "png"}}).data
    assert (point["bytes"], point["quality"]) == (len(made.data), 60)
    assert point["look"] == pytest.approx(imgsvc.compare(exact, made.data).ssimulacra2, abs=0.2)
    assert point["encode"] > 0
    assert reply.json["notes"] == []
    assert len(reply.body) < 1000


async def test_looks_have_a_point_each_and_all_count_as_one_picture(
    client: aiohttp.ClientSession, service: Service
) -> None:
    id_, before = await keep(client), await used(client)
    stored = list((service.state / "temporary").iterdir())
    reply = await scored(client, id_, {**SMALL, "output": {"format": "jpg"}}, [70, 50, 85])
    points = reply.json["points"]
    assert len(points) == 3
    sizes = [point["bytes"] for point in sorted(points, key=lambda point: point["look"])]
    assert sizes == sorted(sizes)
    assert await used(client) == before + 1
    assert list((service.state / "temporary").iterdir()) == stored


async def test_examples_and_what_formats_cannot_hold(client: aiohttp.ClientSession) -> None:
    reply = await scored(client, "emblem.png", {**SMALL, "output": {"format": "jpg"}})
    assert "no transparency" in reply.json["notes"][0]
    reply = await scored(client, "day.gif", {"resize": {"width": 64}, "output": {"format": "jpg"}}, [70])
    assert "Only the first" in reply.json["notes"][0]
    reply = await scored(client, "emblem.png", {**SMALL, "output": {"format": "png"}})
    assert reply.json["points"][0]["look"] == 100
    assert reply.json["points"][0]["quality"] is None


async def test_a_source_belongs_to_its_key(client: aiohttp.ClientSession, service: Service) -> None:
    id_ = await keep(client)
    async with service.client(key=service.new_key()) as other:
        assert_failure(await scored(other, id_, {}), 404, "not_found", "source")
    async with service.client(key="") as stranger:
        assert_failure(await scored(stranger, id_, {}), 401, "unauthorized")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "'request'"),
        ({"request": 3}, "'request'"),
        ({"request": {"resize": {"width": -1}}}, "width"),
        *(({"request": {}, "looks": looks}, "'looks'") for looks in WRONG_LOOKS),
    ],
)
async def test_wrong_bodies_are_refused(body: Any, words: str, client: aiohttp.ClientSession) -> None:
    before = await used(client)
    reply = await call(client, "POST", "/playground/scores/portrait.jpg", json=body)
    assert_failure(reply, 422, "invalid_parameter", words)
    assert await used(client) == before


async def test_what_fails_is_told_and_does_not_count(client: aiohttp.ClientSession) -> None:
    before = await used(client)
    reply = await scored(client, "portrait.jpg", {**SMALL, "output": {"format": "png"}}, [70])
    assert_failure(reply, 422, "unsupported_operation", "format that has a quality")
    tight = {**SMALL, "output": {"format": "jpg", "max_bytes": 100}}
    assert (await scored(client, "portrait.jpg", tight)).status == 422
    assert await used(client) == before


async def test_who_leaves_stops_the_work(client: aiohttp.ClientSession) -> None:
    """The picture does not count, as for any request whose client has gone."""
    id_, before = await keep(client, encoded.png().data), await used(client)
    slow = {"resize": {"width": 3000}, "output": {"format": "avif", "effort": 9}}
    task = asyncio.create_task(scored(client, id_, slow, [70, 50, 85, 35, 60, 92]))
    while await used(client) == before:
        await asyncio.sleep(0.02)
    task.cancel()
    while await used(client) != before:
        await asyncio.sleep(0.02)
