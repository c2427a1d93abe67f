"""The fonts that the service offers for texts, and samples of them."""

from __future__ import annotations

import json
from urllib.parse import quote

import aiohttp
import numpy as np
import pytest

from imgsvc_core import fonts
from tests.http.calls import assert_failure, call
from tests.http.service_process import Service

pytestmark = pytest.mark.asyncio


async def test_all_families_that_texts_may_name_are_listed(client: aiohttp.ClientSession) -> None:
    listed = (await call(client, "GET", "/playground/fonts.json")).json["families"]
    assert listed == sorted(fonts.catalog().families.values())
    assert {"Inter", "Noto Sans Thai"} <= set(listed)


async def test_a_sample_shows_the_letters_of_its_family(client: aiohttp.ClientSession) -> None:
    drawn = {}
    for family in ("Inter", "Noto Sans", "Noto Sans Thai", "Noto Sans CJK JP", "noto sans thai"):
        sample = await call(client, "GET", f"/playground/fonts/{quote(family)}")
        assert sample.headers["Content-Type"] == "image/png"
        assert sample.picture.size == (480, 56)
        pixels = np.asarray(sample.picture.convert("L"))
        assert 0.005 < (pixels < 128).mean() < 0.2
        assert min(pixels[0].min(), pixels[-1].min(), pixels[:, -1].min()) > 200  # nothing is cut off
        drawn[family] = sample.body
    assert drawn["Noto Sans Thai"] == drawn["noto sans thai"]
    assert len(set(drawn.values())) == 4


async def test_a_sample_is_drawn_once(client: aiohttp.ClientSession) -> None:
    first = await call(client, "GET", "/playground/fonts/Inter")
    known = {"If-None-Match": first.headers["ETag"]}
    again = await call(client, "GET", "/playground/fonts/Inter", headers=known)
    assert (again.status, again.body) == (304, b"")
    assert "private" in first.headers["Cache-Control"]


@pytest.mark.parametrize("family", ["Comic Sans", "..%2F..%2Fetc%2Fpasswd", "Inter%20Bold", "%00"])
async def test_other_families_are_not_drawn(family: str, client: aiohttp.ClientSession) -> None:
    assert_failure(await call(client, "GET", f"/playground/fonts/{family}"), 404, "not_found")


async def test_fonts_need_a_key_that_may_process(service: Service) -> None:
    account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
    meter = json.loads(service.imgsvc("keys", "create", account, "--scope", "account", "--json"))["secret"]
    for path in ("/playground/fonts.json", "/playground/fonts/Inter"):
        async with service.client(key="") as visitor:
            assert_failure(await call(visitor, "GET", path), 401, "unauthorized")
        async with service.client(key=meter) as other:
            assert_failure(await call(other, "GET", path), 403, "insufficient_scope", "process")
