"""What the service does: formats, operations, and where results lie."""

from __future__ import annotations

import asyncio
import hashlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from aiohttp import web

from tests.http.calls import assert_failure, call, fetch, upload
from tests.http.service_process import running
from tests.http.sources import serving
from tests.support import encoded
from tests.support.handmade import pillow

pytestmark = pytest.mark.asyncio(loop_scope="module")


class TestWhatTheServiceDoes:
    async def test_a_picture_comes_by_url_or_by_upload(
        self, client: aiohttp.ClientSession, source: str, photo: bytes
    ) -> None:
        """The same picture gives the same result, however it comes."""
        request = {"resize": {"width": 48}}
        fetched = await fetch(client, f"{source}/jpeg", **request)
        uploaded = await upload(client, photo, request)
        assert fetched.status == uploaded.status == 200
        assert fetched.json["output"]["sha256"] == uploaded.json["output"]["sha256"]

    async def test_operations_combine_in_one_request(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """All kinds of operations work together in one request."""
        request = {
            "crop": {"mode": "ratio", "ratio": "1:1"},
            "resize": {"width": 40, "height": 40},
            "adjust": {"contrast": 20},
            "filter": {"sepia": {"value": 50}},
            "border": {"size": 2, "color": "000"},
            "output": {"format": "png"},
        }
        output = (await upload(client, photo, request)).json["output"]
        assert (output["width"], output["height"], output["format"]) == (44, 44, "png")

    @pytest.mark.parametrize(
        ("request_", "size"),
        [({"resize": {"width": 48}}, (48, 32)), ({"scale": {"size": 0.5}}, (48, 32)),
         ({"adjust": {"brightness": 30}}, (96, 64)), ({"crop": {"width": 40, "height": 30}}, (40, 30)),
         ({"stylize": {"sepia": {"value": 80}}}, (96, 64)), ({"filter": {"sepia": {"value": 80}}}, (96, 64)),
         ({"crop": {"mode": "smart", "width": 30, "height": 30}}, (30, 30)),
         ({"flip": {"horizontal": True}}, (96, 64)), ({"rotate": {"angle": 90}}, (64, 96)),
         ({"auto": {"enhance": True}}, (96, 64)), ({"mask": {"shape": "ellipse"}}, (96, 64)),
         ({"padding": {"size": 4, "background": "fff"}}, (104, 72)),
         ({"border": {"size": 3, "color": "000"}}, (102, 70))],
    )  # fmt: skip
    async def test_each_operation_works_alone(
        self, request_: dict[str, Any], size: tuple[int, int], client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Resizing, scaling, adjusting, cropping, stylizing, filtering, and those beyond."""
        if "auto" in request_:  # which leaves good pictures alone
            photo = pillow(encoded.photo() // 3, "JPEG", quality=95)
        plain = (await upload(client, photo)).json["output"]
        reply = await upload(client, photo, request_)
        assert reply.status == 200, reply.json
        output = reply.json["output"]
        assert (output["width"], output["height"]) == size
        assert output["sha256"] != plain["sha256"]

    @pytest.mark.parametrize(
        "kind",
        ["jpeg", "jp2", "png", "apng", "gif", "gif_animated", "webp", "webp_animated", "heic", "tiff", "bmp",
         "ico", "psd", "svg"],
    )  # fmt: skip
    async def test_input_formats(self, kind: str, client: aiohttp.ClientSession, source: str) -> None:
        """Every input format is read, animations included."""
        reply = await fetch(client, f"{source}/{kind}")
        assert reply.status == 200, reply.json
        assert reply.json["input"]["format"] == getattr(encoded, kind)().format

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [("jpeg", "jpg"), ("jp2", "jp2"), ("png", "png"), ("apng", "apng"), ("gif", "gif"), ("webp", "webp"),
         ("heic", "heic"), ("tiff", "jpg"), ("psd", "jpg"), ("bmp", "jpg"), ("ico", "png"), ("svg", "png")],
    )  # fmt: skip
    async def test_formats_stay_where_browsers_or_cameras_know_them(
        self, kind: str, expected: str, client: aiohttp.ClientSession, source: str
    ) -> None:
        """Without an output format, it follows from the input."""
        output = (await fetch(client, f"{source}/{kind}")).json["output"]
        assert output["format"] == expected
        assert output["name"].rpartition(".")[0] == kind

    @pytest.mark.parametrize("name", ["jpg", "jp2", "png", "apng", "gif", "webp", "heic", "avif", "tiff"])
    async def test_output_formats(self, name: str, client: aiohttp.ClientSession, source: str) -> None:
        """Every output format is written; animations stay animated where the format can."""
        request = {"output": {"format": name}}
        still = await fetch(client, f"{source}/jpeg", **request)
        assert still.json["output"]["format"] == name
        if name in ("apng", "gif", "webp"):
            moving = await fetch(client, f"{source}/gif_animated", **request)
            assert moving.json["output"]["frames"] == moving.json["input"]["frames"] > 1

    async def test_the_result_lies_at_a_volatile_url_for_an_hour(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Without a store, the result is found at its URL, for an hour."""
        output = (await upload(client, photo)).json["output"]
        expires = datetime.fromisoformat(output["expires_at"])
        assert timedelta(minutes=59) < expires - datetime.now(UTC) < timedelta(minutes=61)
        stored = await call(client, "GET", output["url"])
        assert (stored.status, len(stored.body)) == (200, output["bytes"])
        assert stored.headers["Content-Type"] == "image/jpeg"
        assert stored.picture.size == (output["width"], output["height"])

    async def test_results_are_served_safely(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """Caches keep a result as long as it is there, and no browser takes it for anything else."""
        url = (await upload(client, photo)).json["output"]["url"]
        stored = await call(client, "GET", url)
        assert stored.headers["X-Content-Type-Options"] == "nosniff"
        caching = re.fullmatch(r"private, max-age=(\d+)", stored.headers["Cache-Control"])
        assert caching is not None
        assert 3500 < int(caching[1]) <= 3601
        known = {"If-None-Match": stored.headers["ETag"]}
        assert (await call(client, "GET", url, headers=known)).status == 304
        other = await call(client, "GET", url, headers={"If-Match": '"other"'})
        assert_failure(other, 412, "precondition_failed", "must name", stored.headers["ETag"])
        part = await call(client, "GET", url, headers={"Range": "bytes=-7"})
        assert (part.status, part.body) == (206, stored.body[-7:])

    async def test_an_hour_later_it_is_gone(self, tmp_path: Path, photo: bytes) -> None:
        """A result in temporary storage is deleted when its time is over, and gone is said to be gone."""
        with running(tmp_path / "state", {"temporary.lifetime_seconds": 5}) as service:
            async with service.client() as client:
                url = (await upload(client, photo)).json["output"]["url"]
                assert (await call(client, "GET", url)).status == 200
                async with asyncio.timeout(60):
                    while (reply := await call(client, "GET", url)).status == 200:
                        await asyncio.sleep(0.1)
                assert_failure(reply, 410, "expired", "process its source again")

    async def test_profile_pictures_are_fetched_anew_each_time(self, tmp_path: Path) -> None:
        """A platform and a user are as good as a URL; the picture is always the present one."""
        asked: list[tuple[str, str]] = []

        async def picture(request: web.Request) -> web.Response:
            asked.append((request.path, request.headers.get("Cache-Control", "")))
            body = pillow(np.full((8, 8, 3), 10 * len(asked), np.uint8), "PNG")
            return web.Response(body=body, headers={"Cache-Control": "max-age=3600", "ETag": '"same"'})

        async def profile(request: web.Request) -> web.Response:
            asked.append((request.path, request.headers.get("Cache-Control", "")))
            address = str(request.url.with_path(f"/of{request.path}.png"))
            found = {"profile_image_url": address, "user": {"profile_pic_url_hd": address}}
            return web.json_response({"data": found}, headers={"Cache-Control": "max-age=3600"})

        digest = hashlib.sha256(b"ann@example.org").hexdigest()
        asked_for = {
            "facebook:4": ["/facebook/4"],
            "twitter:ada_l": ["/twitter/ada_l", "/of/twitter/ada_l.png"],
            "instagram:ada.l": ["/instagram/ada.l", "/of/instagram/ada.l.png"],
            "github:octocat": ["/github/octocat"],
            "gravatar:Ann@example.org": [f"/gravatar/{digest}"],
        }
        profiles = {f"/{name}/{{user}}": profile for name in ("twitter", "instagram")}
        async with serving({**profiles, "/{name:.*}": picture}) as url:
            names = ("facebook", "twitter", "instagram", "github")
            templates = {f"social.{name}_url": f"{url}/{name}/{{user}}" for name in names}
            templates["social.gravatar_url"] = f"{url}/gravatar/{{hash}}"
            settings = {"fetch.private_allowed": "127.0.0.1", **templates}
            with running(tmp_path / "state", settings) as service:
                async with service.client() as client:
                    replies = [await fetch(client, user) for _ in range(2) for user in asked_for]
        assert [reply.status for reply in replies] == [200] * 10
        assert [path for path, _ in asked] == [path for paths in asked_for.values() for path in paths] * 2
        assert {caching for _, caching in asked} == {"no-cache"}
        assert len({reply.json["output"]["sha256"] for reply in replies}) == 10

    async def test_an_unknown_social_platform_is_a_wrong_url(self, client: aiohttp.ClientSession) -> None:
        """Only the five platforms are known."""
        reply = await fetch(client, "myspace:tom")
        assert_failure(reply, 422, "invalid_parameter", "Fetch 'url' parameter must be", "gravatar")

    @pytest.mark.parametrize(
        "url", ["facebook:zuck", "twitter:a b", "instagram:ä", "github:-x", "gravatar:x"]
    )
    async def test_users_have_the_form_of_their_platform(
        self, url: str, client: aiohttp.ClientSession
    ) -> None:
        """Numbers at Facebook, an address at Gravatar, names elsewhere."""
        platform = url.partition(":")[0]
        reply = await fetch(client, url)
        assert_failure(reply, 422, "invalid_parameter", f"Fetch 'url' parameter must be {platform}:")
