"""The interface, section by section, over TLS: one test for each of its rules."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import ssl
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
import pytest_asyncio
from aiohttp import web
from numpy.typing import NDArray

from tests.http.calls import RATE_HEADERS, assert_failure, call, fetch, upload, used
from tests.http.running import Service, running
from tests.http.sources import serving
from tests.http.test_keyfiles import KEYFILE
from tests.support import encoded
from tests.support.handmade import pillow

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMAGE_FIELDS: dict[str, Any] = {
    "name": str, "format": str, "width": int, "height": int, "colorspace": str, "interlaced": bool,
    "subsample": (str, type(None)), "depth": int, "quality": (int, type(None)), "bytes": int,
}  # fmt: skip
MORE_FIELDS = {"frames": int, "alpha": bool, "orientation": int, "sha256": str}
EDGES = ["top-left", "top", "top-right", "right", "bottom-right", "bottom", "bottom-left", "left"]

FILTERS: dict[str, dict[str, Any]] = {
    "duotone": {"light": "fc0", "dark": "112233"},
    "blur": {"mode": "gaussian", "value": 10.5},
    "sepia": {"value": 60},
    "pixellate": {"value": 20},
    "monochrome": {"value": 50, "color": "ff336699"},
    "vignette": {"value": 50, "radius": 40},
    "halftone": {"value": 100},
    "isolate": {"color": "f00", "threshold": 0.5},
}
ADJUSTMENTS: dict[str, tuple[float, float]] = {
    "brightness": (-100, 100), "saturation": (-100, 100), "contrast": (-100, 100), "exposure": (-100, 100),
    "vibrance": (-100, 100), "gamma": (-100, 100), "hue": (-180, 180), "highlight": (-100, 0),
    "shadow": (0, 100), "sharpen": (-100, 100), "unsharp": (0, 100), "temperature": (0, 100),
    "opacity": (0.0, 1.0), "tint": (0, 100),
}  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def source() -> AsyncIterator[str]:
    """URL of a web server whose /<kind> is a picture of that kind."""

    async def picture(request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        if request.query.get("secret") and request.headers.get("Authorization") != "Basic dXNlcjpwYXNz":
            return web.Response(status=401)
        return web.Response(
            body=getattr(encoded, kind)().data, headers={"X-Agent": request.headers["User-Agent"]}
        )

    async with serving({"/{kind}": picture}) as url:
        yield url


@pytest_asyncio.fixture(loop_scope="module")
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.client() as client:
        yield client


@pytest.fixture
def photo() -> bytes:
    return encoded.jpeg().data


def assert_described(image: dict[str, Any]) -> None:
    for name, kind in {**IMAGE_FIELDS, **MORE_FIELDS}.items():
        assert isinstance(image[name], kind), name
    assert re.fullmatch("[0-9a-f]{64}", image["sha256"])


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
        """Without an output format, it follows from the input; JPEG is progressive."""
        output = (await fetch(client, f"{source}/{kind}")).json["output"]
        assert output["format"] == expected
        assert output["name"].rpartition(".")[0] == kind
        assert output["interlaced"] is (expected == "jpg")

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
        part = await call(client, "GET", url, headers={"Range": "bytes=-7"})
        assert (part.status, part.body) == (206, stored.body[-7:])

    async def test_an_hour_later_it_is_gone(self, tmp_path: Path, photo: bytes) -> None:
        """A result in temporary storage is deleted when its time is over, and gone is said to be gone."""
        with running(tmp_path / "state", {"temporary.lifetime_seconds": 1}) as service:
            async with service.client() as client:
                url = (await upload(client, photo)).json["output"]["url"]
                assert (await call(client, "GET", url)).status == 200
                await asyncio.sleep(2.5)
                assert_failure(await call(client, "GET", url), 410, "expired")

    async def test_profile_pictures_are_fetched_anew_each_time(self, tmp_path: Path) -> None:
        """A platform and a user are as good as a URL; the picture is always the present one."""
        asked: list[tuple[str, str]] = []

        async def picture(request: web.Request) -> web.Response:
            asked.append((request.path, request.headers.get("Cache-Control", "")))
            body = pillow(np.full((8, 8, 3), 40 * len(asked), np.uint8), "PNG")
            return web.Response(body=body, headers={"Cache-Control": "max-age=3600", "ETag": '"same"'})

        async with serving({"/{name:.*}": picture}) as url:
            templates = {f"social.{name}_url": f"{url}/{name}/{{user}}" for name in ("facebook", "github")}
            templates["social.gravatar_url"] = f"{url}/gravatar/{{hash}}"
            settings = {"fetch.private_allowed": "127.0.0.1", **templates}
            with running(tmp_path / "state", settings) as service:
                async with service.client() as client:
                    users = ["github:octocat", "facebook:4", "gravatar:Ann@example.org", "github:octocat"]
                    replies = [await fetch(client, user) for user in users]
        digest = hashlib.sha256(b"ann@example.org").hexdigest()
        assert [reply.status for reply in replies] == [200] * 4
        assert [path for path, _ in asked] == [
            "/github/octocat", "/facebook/4", f"/gravatar/{digest}", "/github/octocat"
        ]  # fmt: skip
        assert {caching for _, caching in asked} == {"no-cache"}
        assert len({reply.json["output"]["sha256"] for reply in replies}) == 4

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
            "adjust.hue", "adjust.opacity", "scale.size", "webhook.url", "webhook.delay", "store.key",
            "filter",
        } <= told.keys()  # fmt: skip
        assert ({"limits.seconds", "limits.frames"} <= told.keys()) is (not number.isdigit())
        assert ({"url", "headers"} <= told.keys()) is (way == "fetch")
        for message in told.values():
            assert len(message) < 400
        assert "got" in told["adjust.hue"]

    async def test_a_body_that_is_not_encoded_as_it_says_is_400(self, client: aiohttp.ClientSession) -> None:
        """A body that cannot be decoded is the client's mistake, in JSON and in forms."""
        for path, kind in (
            ("/1.0/fetch", "application/json"),
            ("/1.0/upload", "multipart/form-data; boundary=x"),
        ):
            headers = {"Content-Type": kind, "Content-Encoding": "gzip"}
            reply = await call(client, "POST", path, data=b"no gzip", headers=headers)
            assert_failure(reply, 400, "broken_body", "Content-Encoding")

    @pytest.mark.parametrize("encoding", ["foo", "br", "zstd", "gzip, gzip"])
    @pytest.mark.parametrize("path", ["/1.0/fetch", "/1.0/upload"])
    async def test_unknown_encodings_of_bodies_are_415(
        self, path: str, encoding: str, client: aiohttp.ClientSession
    ) -> None:
        """A body that is encoded in an unknown way is not read as it is."""
        kind = "application/json" if path == "/1.0/fetch" else "multipart/form-data; boundary=x"
        headers = {"Content-Type": kind, "Content-Encoding": encoding}
        reply = await call(client, "POST", path, data=b"{}", headers=headers)
        assert_failure(reply, 415, "unsupported_encoding", "gzip or deflate")
        assert reply.headers["Accept-Encoding"] == "gzip, deflate"

    @pytest.mark.parametrize("url", ["github:octocat", "gravatar:a@b.example"])
    async def test_headers_do_not_go_with_profile_pictures(
        self, url: str, client: aiohttp.ClientSession
    ) -> None:
        """Headers would reach a platform of the service's choice, with its own token."""
        reply = await fetch(client, url, headers={"X-A": "1"})
        failure = assert_failure(reply, 422, "invalid_parameter", "social profile picture")
        assert [error["path"] for error in failure["errors"]] == ["headers"]

    async def test_forms_of_watermarks_and_keyfiles_hold_a_file_alone(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A document that would change nothing is refused."""
        for path in ("/1.0/watermarks", "/1.0/keyfiles"):
            reply = await upload(client, photo, {"opacity": 0.5}, path=path)
            assert_failure(reply, 400, "invalid_multipart", "a part 'data'; expected 'file'")

    @pytest.mark.parametrize("body", [b"[]", b"null", b'"x"', b"1"])
    async def test_the_body_is_an_object(self, body: bytes, client: aiohttp.ClientSession) -> None:
        """Other JSON values are no request."""
        headers = {"Content-Type": "application/json; charset=utf-8"}
        reply = await call(client, "POST", "/1.0/fetch", data=body, headers=headers)
        assert_failure(reply, 422, "invalid_parameter", "JSON object")

    async def test_response_modes_are_json_and_binary(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Other modes are errors."""
        for mode in ("xml", 1, None, "Binary"):
            reply = await upload(client, photo, {"response": {"mode": mode}})
            assert_failure(reply, 422, "invalid_parameter", "Response 'mode' parameter must be one of")


class TestFiltersAdjustmentsWatermarks:
    @pytest.mark.parametrize("key", FILTERS)
    async def test_each_filter_works_and_changes_the_picture(
        self, key: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Every filter works by its name."""
        plain = await upload(client, photo)
        reply = await upload(client, photo, {"filter": {key: FILTERS[key]}})
        assert reply.status == 200, reply.json
        assert reply.json["output"]["sha256"] != plain.json["output"]["sha256"]

    async def test_filters_stack(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """Several filters may be present."""
        assert (await upload(client, photo, {"filter": FILTERS})).status == 200

    @pytest.mark.parametrize(
        ("key", "name"),
        [
            (key, name)
            for key, part in FILTERS.items()
            for name in ("value", "radius", "threshold")
            if name in part
        ],
    )
    async def test_both_ends_of_filter_ranges_are_allowed(
        self, key: str, name: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """0 and 100, or 0 and 1 for thresholds."""
        for value in (0, 1.0 if name == "threshold" else 100):
            reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], name: value}}})
            assert reply.status == 200, reply.json

    async def test_motion_blur_has_a_direction(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """The angle is 90 unless told otherwise, a whole number up to 360, and for motion alone."""

        async def digest(**part: Any) -> str:
            reply = await upload(client, photo, {"filter": {"blur": {"value": 20, **part}}})
            return str(reply.json["output"]["sha256"])

        default = await digest(mode="motion")
        assert await digest(mode="motion", angle=90) == default
        assert await digest(mode="motion", angle=0) != default
        assert await digest(mode="gaussian", angle=0) == await digest(mode="gaussian")
        for angle in (-1, 361, 1.5):
            request = {"filter": {"blur": {"mode": "motion", "value": 20, "angle": angle}}}
            message = "Blur 'angle' parameter must be integer within 0 to 360 range"
            assert_failure(await upload(client, photo, request), 422, "invalid_parameter", message)

    async def test_colors_are_written_in_three_ways(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """RGB, RRGGBB and AARRGGBB, in any case, with or without a hash."""
        digests = set()
        for color in ("fc0", "#FC0", "ffcc00", "#FfCc00", "ffffcc00"):
            reply = await upload(client, photo, {"filter": {"monochrome": {"value": 80, "color": color}}})
            digests.add(reply.json["output"]["sha256"])
        assert len(digests) == 1

    @pytest.mark.parametrize("key", ["sepia", "pixellate", "monochrome", "vignette", "halftone", "blur"])
    @pytest.mark.parametrize("value", [-0.1, 100.1, "5", None, True])
    async def test_filter_values_are_floats_within_0_to_100(
        self, key: str, value: Any, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """The message names operation, parameter, type and range, and the error its path."""
        reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], "value": value}}})
        title = key.capitalize()
        message = f"{title} 'value' parameter must be float within 0 to 100 range"
        failure = assert_failure(reply, 422, "invalid_parameter", message)
        assert failure["errors"][0]["path"] == f"filter.{key}.value"

    @pytest.mark.parametrize(
        ("key", "name"),
        [("blur", "mode"), ("blur", "value"), ("sepia", "value"), ("pixellate", "value"),
         ("monochrome", "value"), ("monochrome", "color"), ("vignette", "value"),
         ("vignette", "radius"), ("halftone", "value"),
         ("isolate", "color")],
    )  # fmt: skip
    async def test_required_parameters_of_filters(
        self, key: str, name: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """What a filter needs must be there."""
        rest = {item: value for item, value in FILTERS[key].items() if item != name}
        reply = await upload(client, photo, {"filter": {key: rest}})
        assert_failure(reply, 422, "invalid_parameter", f"'{name}' parameter is required")

    @pytest.mark.parametrize(
        ("key", "part"),
        [("blur", {"mode": "box"}), ("blur", {"mode": "motion", "angle": 361}),
         ("isolate", {"threshold": 1.1}), ("vignette", {"radius": 101}),
         ("duotone", {"light": "ff00ff00"}), ("monochrome", {"color": "red"})],
    )  # fmt: skip
    async def test_other_ranges_of_filters(
        self, key: str, part: dict[str, Any], client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Modes, angles, radii, thresholds and colours have their ranges."""
        reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], **part}}})
        assert_failure(reply, 422, "invalid_parameter", f"'{list(part)[-1]}' parameter must be")

    @pytest.mark.parametrize("key", ADJUSTMENTS)
    async def test_each_adjustment_has_its_range(
        self, key: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Both ends of each range are allowed, and nothing beyond or of another type."""
        low, high = ADJUSTMENTS[key]
        for value in (low, high):
            assert (await upload(client, photo, {"adjust": {key: value}})).status == 200
        for wrong in (low - 1, high + 1, "1", True):
            reply = await upload(client, photo, {"adjust": {key: wrong}})
            failure = assert_failure(reply, 422, "invalid_parameter", f"'{key}' parameter must be")
            assert f"within {low:g} to {high:g} range" in failure["message"]

    async def test_invert_is_a_boolean(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """The one adjustment that is no number."""
        assert (await upload(client, photo, {"adjust": {"invert": True}})).status == 200
        assert_failure(
            await upload(client, photo, {"adjust": {"invert": 1}}), 422, "invalid_parameter", "boolean"
        )

    async def test_adjustments_combine(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """All of them may be given at once."""
        adjust = {key: high for key, (_, high) in ADJUSTMENTS.items()} | {"invert": True}
        assert (await upload(client, photo, {"adjust": adjust})).status == 200

    async def test_a_watermark_is_uploaded_and_then_named_by_its_id(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A watermark belongs to the account before requests refer to it, until it is deleted."""
        made = await upload(client, encoded.png_alpha().data, name="logo.png", path="/1.0/watermarks")
        assert made.status == 201
        watermark = made.json["watermark"]
        listed = (await call(client, "GET", "/1.0/watermarks")).json["watermarks"]
        assert watermark in listed
        assert (await call(client, "GET", f"/1.0/watermarks/{watermark['id']}")).json[
            "watermark"
        ] == watermark
        plain = await upload(client, photo)
        for gravity in EDGES:
            request = {"watermark": {"id": watermark["id"], "gravity": gravity, "padding": 3, "scale": 0.3}}
            marked = await upload(client, photo, request)
            assert marked.status == 200, marked.json
            assert marked.json["output"]["sha256"] != plain.json["output"]["sha256"]
        assert (await call(client, "DELETE", f"/1.0/watermarks/{watermark['id']}")).status == 200
        assert_failure(
            await call(client, "GET", f"/1.0/watermarks/{watermark['id']}"), 404, "not_found", "watermark"
        )
        reply = await upload(client, photo, {"watermark": {"id": watermark["id"]}})
        assert_failure(reply, 422, "invalid_parameter", "Watermark 'id' parameter must be")

    @pytest.mark.parametrize(
        ("part", "box"),
        [({}, (20, 15, 40, 25)),
         *[({"gravity": gravity, "padding": 3}, box) for gravity, box in zip(EDGES, (
             (3, 3, 23, 13), (20, 3, 40, 13), (37, 3, 57, 13), (37, 15, 57, 25), (37, 27, 57, 37),
             (20, 27, 40, 37), (3, 27, 23, 37), (3, 15, 23, 25)), strict=True)],
         ({"gravity": "top-left"}, (0, 0, 20, 10)),
         ({"x": 7, "y": 9}, (7, 9, 27, 19)), ({"x": 50, "y": -4}, (50, 0, 60, 6)),
         ({"scale": 0.5, "x": 0, "y": 0}, (0, 0, 10, 5)), ({"width": 10, "x": 0, "y": 0}, (0, 0, 10, 5)),
         ({"height": 5, "x": 0, "y": 0}, (0, 0, 10, 5)),
         ({"width": 10, "height": 9, "x": 0, "y": 0}, (0, 0, 10, 5)),
         ({"width": 100, "height": 100}, (20, 15, 40, 25)), ({"fit": True}, (20, 15, 40, 25)),
         ({"fit": True, "gravity": "right", "padding": 2}, (38, 15, 58, 25))],
    )  # fmt: skip
    async def test_where_a_watermark_lies_and_how_large(
        self, part: dict[str, Any], box: tuple[int, int, int, int], client: aiohttp.ClientSession
    ) -> None:
        """Centered, by gravity or exactly placed; made smaller when asked for, never larger."""
        assert await self._red_box(client, np.full((10, 20), 255, np.uint8), part) == box

    @pytest.mark.parametrize(
        ("part", "box"),
        [({}, (20, 15, 40, 25)), ({"scale": 1.0}, (20, 15, 40, 25)), ({"fit": True}, (25, 18, 35, 23)),
         ({"x": 0, "y": 0}, (50, 35, 60, 40))],
    )  # fmt: skip
    async def test_watermarks_larger_than_the_picture(
        self, part: dict[str, Any], box: tuple[int, int, int, int], client: aiohttp.ClientSession
    ) -> None:
        """One keeps its size and is cut off, unless it has to fit."""
        middle = np.zeros((80, 120), np.uint8)
        middle[35:45, 50:70] = 255
        left, top, right, bottom = await self._red_box(client, middle, part)
        assert np.abs(np.subtract((left, top, right, bottom), box)).max() <= 1

    async def test_the_opacity_of_a_watermark(self, client: aiohttp.ClientSession) -> None:
        """It is the watermark's own unless it is lowered."""
        half = np.full((10, 20), 128, np.uint8)
        shades = [
            (await self._marked(client, alpha, part))[20, 30, 1]
            for alpha, part in ((half, {}), (half * 0 + 255, {"opacity": 0.5}), (half * 0 + 255, {}))
        ]
        assert np.abs(np.subtract(shades, (64, 64, 0))).max() <= 1

    async def _red_box(
        self, client: aiohttp.ClientSession, alpha: NDArray[np.uint8], part: dict[str, Any]
    ) -> tuple[int, ...]:
        """Left, top, right and bottom of what a red watermark covers."""
        rows, columns = np.nonzero((await self._marked(client, alpha, part))[:, :, 1] < 64)
        return int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1

    async def _marked(
        self, client: aiohttp.ClientSession, alpha: NDArray[np.uint8], part: dict[str, Any]
    ) -> NDArray[np.uint8]:
        """A grey picture of 60 x 40 with a red watermark on it."""
        red = np.zeros((*alpha.shape, 4), np.uint8)
        red[:, :, 0], red[:, :, 3] = 255, alpha
        made = await upload(client, pillow(red, "PNG"), path="/1.0/watermarks")
        id_ = made.json["watermark"]["id"]
        grey = pillow(np.full((40, 60, 3), 128, np.uint8), "PNG")
        request = {"watermark": {"id": id_, **part}, "response": {"mode": "binary"}}
        reply = await upload(client, grey, request)
        assert reply.status == 200, reply.metadata
        await call(client, "DELETE", f"/1.0/watermarks/{id_}")
        return np.asarray(reply.picture.convert("RGB"))

    @pytest.mark.parametrize(
        ("part", "name"),
        [({"gravity": "middle"}, "gravity"), ({"padding": -1}, "padding"), ({"x": 1.5}, "x"),
         ({"opacity": 0}, "opacity"), ({"scale": 1.01}, "scale"), ({"width": 0}, "width"),
         ({"fit": 1}, "fit")],
    )  # fmt: skip
    async def test_watermark_ranges(
        self, part: dict[str, Any], name: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Each parameter of a watermark has its type and range."""
        reply = await upload(client, photo, {"watermark": {"id": "x", **part}})
        assert_failure(reply, 422, "invalid_parameter", f"Watermark '{name}' parameter must be")

    async def test_a_watermark_needs_its_id(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """The one parameter that is required."""
        reply = await upload(client, photo, {"watermark": {"gravity": "top"}})
        assert_failure(reply, 422, "invalid_parameter", "Watermark 'id' parameter is required")


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


class TestFetch:
    async def test_only_json_is_accepted(self, client: aiohttp.ClientSession, source: str) -> None:
        """No form fields are accepted, nor other types of bodies."""
        for options in (
            {"data": {"url": f"{source}/jpeg"}},
            {"data": b"{}", "headers": {"Content-Type": "text/x"}},
        ):
            reply = await call(client, "POST", "/1.0/fetch", **options)
            assert_failure(reply, 415, "unsupported_media_type", "application/json")

    async def test_the_url_is_required(self, client: aiohttp.ClientSession) -> None:
        """A fetch needs a URL."""
        reply = await call(client, "POST", "/1.0/fetch", json={})
        assert_failure(reply, 422, "invalid_parameter", "Fetch 'url' parameter is required")

    async def test_binary_mode_answers_the_picture(self, client: aiohttp.ClientSession, source: str) -> None:
        """The body is the picture, a header has the metadata, and temporary storage the picture as well."""
        request = {"resize": {"width": 30}, "output": {"format": "webp"}, "response": {"mode": "binary"}}
        reply = await call(
            client, "POST", "/1.0/fetch",
            json={"url": f"{source}/jpeg", **request}, headers={"X-Svc-Binary": "1"},
        )  # fmt: skip
        assert (reply.status, reply.headers["Content-Type"]) == (200, "image/webp")
        assert reply.picture.size == (30, 20)
        metadata = reply.metadata
        assert (metadata["success"], metadata["code"]) == (True, 200)
        assert metadata["output"]["bytes"] == len(reply.body)
        assert (await call(client, "GET", metadata["output"]["url"])).body == reply.body

    @pytest.mark.parametrize(
        ("headers", "mode"),
        [({"X-Svc-Binary": "1"}, {}), ({"X-Svc-Binary": "true"}, {}), ({}, {"mode": "binary"})],
    )
    async def test_either_signal_is_enough(
        self, headers: dict[str, str], mode: dict[str, str], client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Header or mode ask for a binary answer, as both together do."""
        reply = await upload(client, photo, {"response": mode}, headers=headers)
        assert reply.headers["Content-Type"] == "image/jpeg"
        assert reply.picture.format == "JPEG"

    @pytest.mark.parametrize(
        "request_",
        [{"resize": {"width": -1}}, {"nonsense": 1}, {"webhook": {"url": "https://example.org/"}}],
    )
    async def test_binary_failures_have_no_body(
        self, request_: dict[str, Any], client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A failed binary call has its metadata in the header and no body; webhooks do not go with it."""
        reply = await upload(client, photo, {**request_, "response": {"mode": "binary"}})
        assert (reply.status, reply.body) == (422, b"")
        assert (reply.metadata["success"], reply.metadata["code"]) == (False, 422)
        assert reply.metadata["error"] == "invalid_parameter"

    async def test_a_binary_answer_for_a_source_that_is_not_there(
        self, client: aiohttp.ClientSession, source: str
    ) -> None:
        """Failures after the request was accepted are in the header as well."""
        request = {"url": f"{source}/jpeg?secret=1", "response": {"mode": "binary"}}
        reply = await call(client, "POST", "/1.0/fetch", json=request, headers={"X-Svc-Binary": "1"})
        assert (reply.status, reply.body, reply.metadata["error"]) == (422, b"", "source_unreachable")

    async def test_without_a_signal_the_answer_is_json(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """JSON is the default, and what any other value of the header means."""
        for header in ({}, {"X-Svc-Binary": "0"}, {"X-Svc-Binary": "false"}, {"Accept": "image/webp"}):
            reply = await upload(client, photo, {"response": {"mode": "json"}}, headers=header)
            assert reply.headers["Content-Type"].startswith("application/json")
            assert "X-Svc-Metadata" not in reply.headers

    async def test_binary_failures_before_the_body_is_read(self, service: Service) -> None:
        """A refusal for any other reason is no exception."""
        async with service.client(key="wrong", headers={"X-Svc-Binary": "1"}) as stranger:
            reply = await upload(stranger, b"x")
        assert (reply.status, reply.body, reply.metadata["code"]) == (401, b"", 401)

    async def test_names_in_other_scripts_travel_in_the_header(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """The metadata header is ASCII whatever it holds."""
        headers = {"X-Svc-Binary": "1"}
        reply = await upload(client, photo, name="фото 写真.jpg", headers=headers)
        assert reply.metadata["input"]["name"] == "фото 写真.jpg"

    async def test_auto_follows_accept_in_binary_mode(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """The format is negotiated where a picture is answered."""
        request = {"output": {"format": "auto"}, "response": {"mode": "binary"}}
        for accept, expected in (("image/avif,image/webp,*/*", "image/avif"), ("image/webp", "image/webp"),
                                 ("text/html", "image/jpeg")):  # fmt: skip
            reply = await upload(client, photo, request, headers={"Accept": accept})
            assert reply.headers["Content-Type"] == expected

    async def test_credentials_may_be_in_the_url(self, client: aiohttp.ClientSession, source: str) -> None:
        """Basic credentials of a source are used, and never repeated."""
        with_credentials = source.replace("://", "://user:pass@")
        assert (await fetch(client, f"{with_credentials}/jpeg?secret=1")).status == 200
        refused = await fetch(client, f"{source.replace('://', '://user:wrong@')}/jpeg?secret=1")
        assert_failure(refused, 422, "source_unreachable", "401")
        assert "wrong" not in refused.json["message"]

    async def test_private_addresses_are_refused(self, client: aiohttp.ClientSession) -> None:
        """Only public addresses are fetched from."""
        for host in ("10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]"):
            assert_failure(await fetch(client, f"http://{host}/"), 422, "source_unreachable", "public")

    async def test_extra_headers_are_sent(self, client: aiohttp.ClientSession, source: str) -> None:
        """A request may send headers along with the fetch, but none of the connection itself."""
        headers = {"Authorization": "Basic dXNlcjpwYXNz"}
        assert (await fetch(client, f"{source}/jpeg?secret=1", headers=headers)).status == 200
        reply = await fetch(client, f"{source}/jpeg", headers={"Host": "x"})
        assert_failure(reply, 422, "invalid_parameter", "headers")

    async def test_redirects_are_followed_five_times(self, client: aiohttp.ClientSession) -> None:
        """Sources may have moved, but not for ever, and not to private places."""

        async def move(request: web.Request) -> web.Response:
            left = int(request.match_info["left"])
            target = {0: "/photo", -1: "http://10.0.0.1/"}.get(left, f"/moved/{left - 1}")
            return web.Response(status=302, headers={"Location": target})

        async def picture(_: web.Request) -> web.Response:
            return web.Response(body=encoded.png().data)

        async with serving({"/moved/{left:.*}": move, "/photo": picture}) as url:
            assert (await fetch(client, f"{url}/moved/4")).status == 200
            assert_failure(await fetch(client, f"{url}/moved/5"), 422, "source_unreachable", "redirects")
            assert_failure(await fetch(client, f"{url}/moved/-1"), 422, "source_unreachable", "public")

    async def test_a_repeated_key_gives_the_same_answer(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """An Idempotency-Key is for one request, done and counted once."""
        headers, before = {"Idempotency-Key": str(uuid.uuid4())}, await used(client)
        first, again = [await upload(client, photo, {}, headers=headers) for _ in range(2)]
        assert first.json == again.json
        assert await used(client) == before + 1
        other = await upload(client, photo, {"flip": {"vertical": True}}, headers=headers)
        assert_failure(other, 409, "idempotency_conflict")


class TestUpload:
    async def test_parts_come_in_either_order_and_file_may_be_bare(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Form or mixed, file or data first, without file name and content type."""
        file = b'Content-Disposition: form-data; name="file"\r\n\r\n' + photo
        data = b'Content-Disposition: form-data; name="data"\r\n\r\n{"resize": {"width": 24}}'
        for parts in ((file, data), (data, file)):
            for kind in ("form-data", "mixed"):
                body = b"".join(b"--frontier\r\n" + part + b"\r\n" for part in parts) + b"--frontier--\r\n"
                headers = {"Content-Type": f"multipart/{kind}; boundary=frontier"}
                reply = await call(client, "POST", "/1.0/upload", data=body, headers=headers)
                assert reply.json["output"]["width"] == 24

    async def test_data_may_be_missing_or_empty(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """An upload without operations is fine."""
        assert (await upload(client, photo)).status == 200
        assert (await upload(client, photo, {})).status == 200

    async def test_the_file_is_required(self, client: aiohttp.ClientSession) -> None:
        """An upload needs a file."""
        form = aiohttp.FormData({"data": "{}"}, default_to_multipart=True)
        reply = await call(client, "POST", "/1.0/upload", data=form)
        assert_failure(reply, 422, "invalid_parameter", "Upload 'file' parameter is required")

    async def test_a_url_is_not_accepted(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """An upload has no URL."""
        reply = await upload(client, photo, {"url": "https://example.org/"})
        assert_failure(reply, 422, "invalid_parameter", "url")


class TestAccount:
    async def test_the_account_tells_its_subscription_and_quota(self, client: aiohttp.ClientSession) -> None:
        """Company, plan, period, and a quota that adds up."""
        account = (await call(client, "GET", "/1.0/account")).json
        assert isinstance(account["company"], str)
        assert set(account["subscription"]) == {"name", "period"}
        quota = account["quota"]
        assert quota["total"] - quota["used"] == quota["remaining"]

    async def test_every_processed_picture_counts_one_and_failures_nothing(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Only successes use up the quota."""
        before = await used(client)
        await upload(client, photo)
        await upload(client, photo, {"resize": {"width": 0}})
        await upload(client, b"no image")
        await fetch(client, "http://10.0.0.1/")
        assert await used(client) == before + 1

    async def test_a_used_up_quota_is_402(self, tmp_path: Path, photo: bytes) -> None:
        """The quota holds for calls at the same time, too."""
        with running(tmp_path / "state", {"accounts.quota": 2}) as service:
            async with service.client() as client:
                replies = await asyncio.gather(*(upload(client, photo) for _ in range(6)))
                assert sorted(reply.status for reply in replies) == [200, 200, 402, 402, 402, 402]
                assert_failure(await upload(client, photo), 402, "quota_exceeded", "quota of 2")
                quota = (await call(client, "GET", "/1.0/account")).json["quota"]
                assert quota == {"total": 2, "used": 2, "remaining": 0}


class TestKeyfiles:
    async def test_keyfiles_show_their_mail_but_never_their_key(
        self, client: aiohttp.ClientSession, service: Service
    ) -> None:
        """A keyfile is kept encrypted, and shown without its key."""
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("file", json.dumps(KEYFILE), filename="key.json")
        for options in ({"json": KEYFILE}, {"data": form}):
            made = await call(client, "POST", "/1.0/keyfiles", **options)
            assert made.status == 201
            shown = made.json["keyfile"]
            assert set(shown) == {"id", "client_email", "created_at"}
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["created_at"])
            assert shown in (await call(client, "GET", "/1.0/keyfiles")).json["keyfiles"]
            for path in service.state.iterdir():
                if path.is_file():
                    assert b"PRIVATE KEY" not in path.read_bytes() or path.suffix == ".key"
            assert (await call(client, "DELETE", f"/1.0/keyfiles/{shown['id']}")).status == 200
            gone = await call(client, "DELETE", f"/1.0/keyfiles/{shown['id']}")
            assert_failure(gone, 404, "not_found", "keyfile")


class TestAuthentication:
    async def test_basic_with_an_empty_password_and_bearer(self, service: Service) -> None:
        """Both forms of authentication do."""
        for value in (
            f"Bearer {service.key}",
            "Basic " + base64.b64encode(f"{service.key}:".encode()).decode(),
        ):
            async with service.client(key="", headers={"Authorization": value}) as client:
                assert (await call(client, "GET", "/1.0/account")).status == 200

    @pytest.mark.parametrize(
        "value", ["", "Bearer", "Bearer wrong", "Basic !!!", "Basic d3Jvbmc6", "Digest x", "Bearer é"]
    )
    async def test_anything_else_is_401(self, value: str, service: Service) -> None:
        """Without a valid key nothing is done, and the answer names both forms."""
        async with service.client(key="", headers={"Authorization": value}) as client:
            for method, path in (("GET", "/1.0/account"), ("POST", "/1.0/fetch"), ("GET", "/1.0/nothing")):
                reply = await call(client, method, path)
                assert_failure(reply, 401, "unauthorized")
                assert "Basic" in reply.headers["WWW-Authenticate"]
                assert "Bearer" in reply.headers["WWW-Authenticate"]

    async def test_a_password_is_refused(self, service: Service) -> None:
        """With Basic, the password is empty."""
        value = "Basic " + base64.b64encode(f"{service.key}:secret".encode()).decode()
        async with service.client(key="", headers={"Authorization": value}) as client:
            assert (await call(client, "GET", "/1.0/account")).status == 401

    async def test_plain_http_fails_and_says_why(self, service: Service) -> None:
        """Plain HTTP is refused on the same port, without a redirect."""
        headers = {"Authorization": f"Bearer {service.key}"}
        async with aiohttp.ClientSession(f"http://localhost:{service.port}", headers=headers) as client:
            for path in ("/1.0/account", "/healthz", "/nothing"):
                reply = await call(client, "GET", path, allow_redirects=False)
                assert_failure(reply, 403, "https_required", "https://")

    @pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
    async def test_old_tls_is_refused(self, service: Service) -> None:
        """TLS 1.2 is the least."""
        context = ssl.create_default_context(cafile=service.certificate)
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("DEFAULT:@SECLEVEL=0")  # without this, the client itself refuses
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await asyncio.open_connection("localhost", service.port, ssl=context)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        _, writer = await asyncio.open_connection("localhost", service.port, ssl=context)
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        writer.close()

    async def test_keys_have_scopes_and_can_be_revoked(self, service: Service, photo: bytes) -> None:
        """A key does what it is for, until it is revoked."""
        account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
        made = json.loads(service.imgsvc("keys", "create", account, "--scope", "account", "--json"))
        async with service.client(key=made["secret"]) as client:
            assert (await call(client, "GET", "/1.0/account")).status == 200
            assert (await call(client, "GET", "/1.0/keyfiles")).status == 200
            assert_failure(await upload(client, photo), 403, "insufficient_scope", "process")
            service.imgsvc("keys", "revoke", made["id"])
            await asyncio.sleep(3.5)
            assert_failure(await call(client, "GET", "/1.0/account"), 401, "unauthorized")
        for scope, looks in (("process", False), ("admin", True)):
            made = json.loads(service.imgsvc("keys", "create", account, "--scope", scope, "--json"))
            async with service.client(key=made["secret"]) as client:
                assert (await upload(client, photo)).status == 200
                for path in ("/1.0/keyfiles", "/1.0/watermarks", "/1.0/webhooks"):
                    assert ((await call(client, "GET", path)).status == 200) is looks


class TestErrors:
    async def test_all_problems_are_listed_with_their_paths(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Not only the first problem is told."""
        request = {
            "resize": {"width": 0},
            "filter": {"sepia": {"value": 101}},
            "nonsense": True,
            "response": {"mode": "xml"},
            "webhook": {"delay": 604801},
        }
        failure = assert_failure(await upload(client, photo, request), 422, "invalid_parameter")
        paths = {error["path"] for error in failure["errors"]}
        assert paths == {
            "resize.width", "filter.sepia.value", "nonsense", "response.mode", "webhook.url", "webhook.delay",
        }  # fmt: skip

    async def test_other_methods_and_paths(self, client: aiohttp.ClientSession) -> None:
        """What is not there, and what cannot be done with what is there."""
        reply = await call(client, "DELETE", "/1.0/account")
        assert_failure(reply, 405, "method_not_allowed", "GET")
        assert "GET" in reply.headers["Allow"]
        assert_failure(await call(client, "GET", "/2.0/account"), 404, "not_found")
        assert_failure(await call(client, "GET", "/1.0/watermarks/x"), 404, "not_found")
        assert_failure(await call(client, "GET", "/1.0/images/x"), 404, "not_found")


class TestLimits:
    async def test_the_rate_is_limited_by_key(self, tmp_path: Path) -> None:
        """All calls of a key count, of whatever kind; the refusal tells when to come again."""
        with running(tmp_path / "state", {"rate.requests": 5, "rate.period_seconds": 60}) as service:
            async with service.client() as client:
                left = [
                    int((await call(client, "GET", path)).headers["X-RateLimit-Remaining"])
                    for path in (
                        "/1.0/account",
                        "/nothing",
                        "/1.0/account",
                        "/1.0/watermarks",
                        "/1.0/account",
                    )
                ]
                assert left == [4, 3, 2, 1, 0]
                reply = await call(client, "GET", "/1.0/account")
                seconds = int(reply.headers["Retry-After"])
                assert 1 <= seconds <= 120
                failure = assert_failure(reply, 429, "rate_limit_exceeded")
                assert failure["message"] == f"Rate limit exceeded. Retry in {seconds} seconds."
                assert reply.headers["X-RateLimit-Limit"] == "5"
                assert 0 <= int(reply.headers["X-RateLimit-Reset"]) <= 60

    async def test_each_key_has_its_own_rate(self, tmp_path: Path) -> None:
        """A key that is used up does not hold up another one, and binary failures tell it in the header."""
        with running(tmp_path / "state", {"rate.requests": 3, "rate.period_seconds": 60}) as service:
            account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
            second = json.loads(service.imgsvc("keys", "create", account, "--json"))["secret"]
            async with service.client() as one, service.client(key=second) as other:
                for _ in range(3):
                    await call(one, "GET", "/1.0/account")
                refused = await upload(one, b"", headers={"X-Svc-Binary": "1"})
                assert (refused.status, refused.body, refused.metadata["code"]) == (429, b"", 429)
                assert int(refused.headers["Retry-After"]) >= 1
                assert (await call(other, "GET", "/1.0/account")).headers["X-RateLimit-Remaining"] == "2"

    async def test_the_default_rate(self, client: aiohttp.ClientSession) -> None:
        """100,000 requests in 15 minutes, told on every response."""
        headers = (await call(client, "GET", "/1.0/account")).headers
        assert headers["X-RateLimit-Limit"] == "100000"
        assert all(name in headers for name in RATE_HEADERS)

    async def test_a_request_may_tighten_limits_but_not_raise_them(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Limits of the service are the widest."""
        tight = await upload(client, photo, {"limits": {"source_pixels": 100}})
        assert_failure(tight, 422, "image_too_large", "at most 100")
        few = await upload(client, photo, {"limits": {"source_bytes": 10}})
        assert_failure(few, 413, "source_too_large")
        wide = {"limits": {"output_side": 10**9}, "resize": {"width": 20_000, "height": 1, "mode": "stretch"}}
        assert_failure(await upload(client, photo, wide), 422, "output_too_large", "16,384")
        wrong = await upload(client, photo, {"limits": {"frames": -1, "pages": 2}})
        failure = assert_failure(wrong, 422, "invalid_parameter")
        assert {error["path"] for error in failure["errors"]} == {"limits.frames", "limits.pages"}

    @pytest.mark.parametrize("delay", [0, 604_801, 1.5, "1"])
    async def test_the_range_of_webhook_delays(
        self, delay: Any, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A delay is a whole number of seconds, up to a week."""
        request = {"webhook": {"url": "https://example.org/", "delay": delay}}
        reply = await upload(client, photo, request)
        assert_failure(
            reply,
            422,
            "invalid_parameter",
            "Webhook 'delay' parameter must be integer within 1 to 604800 range",
        )


class TestVersioning:
    async def test_the_version_is_in_every_path(self, client: aiohttp.ClientSession) -> None:
        """Every path of the interface begins with its version."""
        document = (await call(client, "GET", "/1.0/openapi.json")).json
        unversioned = [path for path in document["paths"] if not path.startswith("/1.0/")]
        assert unversioned == ["/healthz", "/readyz"]

    async def test_the_user_agent_carries_it(self, client: aiohttp.ClientSession) -> None:
        """Sources see which version fetches them."""
        seen: list[str] = []

        async def picture(request: web.Request) -> web.Response:
            seen.append(request.headers["User-Agent"])
            return web.Response(body=encoded.png().data)

        async with serving({"/p": picture}) as url:
            await fetch(client, f"{url}/p")
        assert seen == ["imgsvc/1.0"]
