"""The interface, section by section, over TLS: one test for each of its rules."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.http.calls import RATE_HEADERS, assert_failure, call, fetch, upload, used
from tests.http.running import Service, running
from tests.http.sources import serving
from tests.http.test_keyfiles import KEYFILE
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")

IMAGE_FIELDS = {
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
ADJUSTMENTS = {
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
        request = {"resize": {"width": 48}}
        fetched = await fetch(client, f"{source}/jpeg", **request)
        uploaded = await upload(client, photo, request)
        assert fetched.status == uploaded.status == 200
        assert fetched.json["output"]["sha256"] == uploaded.json["output"]["sha256"]

    async def test_operations_combine_in_one_request(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
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
        "kind",
        ["jpeg", "jp2", "png", "apng", "gif", "gif_animated", "webp", "webp_animated", "heic", "tiff", "bmp",
         "ico", "psd", "svg"],
    )  # fmt: skip
    async def test_input_formats(self, kind: str, client: aiohttp.ClientSession, source: str) -> None:
        reply = await fetch(client, f"{source}/{kind}")
        assert reply.status == 200, reply.json
        assert reply.json["input"]["format"] == getattr(encoded, kind)().format

    @pytest.mark.parametrize("name", ["jpg", "jp2", "png", "apng", "gif", "webp", "heic", "avif", "tiff"])
    async def test_output_formats(self, name: str, client: aiohttp.ClientSession, source: str) -> None:
        request = {"output": {"format": name}}
        still = await fetch(client, f"{source}/jpeg", **request)
        assert still.json["output"]["format"] == name
        if name in ("apng", "gif", "webp"):
            moving = await fetch(client, f"{source}/gif_animated", **request)
            assert moving.json["output"]["frames"] == moving.json["input"]["frames"] > 1

    async def test_the_result_lies_at_a_volatile_url_for_an_hour(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        output = (await upload(client, photo)).json["output"]
        expires = datetime.fromisoformat(output["expires_at"])
        assert timedelta(minutes=59) < expires - datetime.now(UTC) < timedelta(minutes=61)
        stored = await call(client, "GET", output["url"])
        assert (stored.status, len(stored.body)) == (200, output["bytes"])
        assert stored.headers["Content-Type"] == "image/jpeg"
        assert stored.picture.size == (output["width"], output["height"])

    async def test_an_hour_later_it_is_gone(self, tmp_path: Path, photo: bytes) -> None:
        with running(tmp_path / "state", {"temporary.lifetime_seconds": 1}) as service:
            async with service.client() as client:
                url = (await upload(client, photo)).json["output"]["url"]
                assert (await call(client, "GET", url)).status == 200
                await asyncio.sleep(2.5)
                assert_failure(await call(client, "GET", url), 410, "expired")

    async def test_an_unknown_social_platform_is_a_wrong_url(self, client: aiohttp.ClientSession) -> None:
        reply = await fetch(client, "myspace:tom")
        assert_failure(reply, 422, "invalid_parameter", "Fetch 'url' parameter must be", "gravatar")


class TestFiltersAdjustmentsWatermarks:
    @pytest.mark.parametrize("key", FILTERS)
    async def test_each_filter_works_and_changes_the_picture(
        self, key: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        plain = await upload(client, photo)
        reply = await upload(client, photo, {"filter": {key: FILTERS[key]}})
        assert reply.status == 200, reply.json
        assert reply.json["output"]["sha256"] != plain.json["output"]["sha256"]

    async def test_filters_stack(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        assert (await upload(client, photo, {"filter": FILTERS})).status == 200

    @pytest.mark.parametrize("key", ["sepia", "pixellate", "monochrome", "vignette", "halftone", "blur"])
    @pytest.mark.parametrize("value", [-0.1, 100.1, "5", None, True])
    async def test_filter_values_are_floats_within_0_to_100(
        self, key: str, value: Any, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
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
        reply = await upload(client, photo, {"filter": {key: {**FILTERS[key], **part}}})
        assert_failure(reply, 422, "invalid_parameter", f"'{list(part)[-1]}' parameter must be")

    @pytest.mark.parametrize("key", ADJUSTMENTS)
    async def test_each_adjustment_has_its_range(
        self, key: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        low, high = ADJUSTMENTS[key]
        for value in (low, high):
            assert (await upload(client, photo, {"adjust": {key: value}})).status == 200
        for value in (low - 1, high + 1, "1", True):
            reply = await upload(client, photo, {"adjust": {key: value}})
            failure = assert_failure(reply, 422, "invalid_parameter", f"'{key}' parameter must be")
            assert f"within {low:g} to {high:g} range" in failure["message"]

    async def test_invert_is_a_boolean(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        assert (await upload(client, photo, {"adjust": {"invert": True}})).status == 200
        assert_failure(
            await upload(client, photo, {"adjust": {"invert": 1}}), 422, "invalid_parameter", "boolean"
        )

    async def test_a_watermark_is_uploaded_and_then_named_by_its_id(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
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
        ("part", "name"),
        [({"gravity": "middle"}, "gravity"), ({"padding": -1}, "padding"), ({"x": 1.5}, "x"),
         ({"opacity": 0}, "opacity"), ({"scale": 1.01}, "scale"), ({"width": 0}, "width"),
         ({"fit": 1}, "fit")],
    )  # fmt: skip
    async def test_watermark_ranges(
        self, part: dict[str, Any], name: str, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        reply = await upload(client, photo, {"watermark": {"id": "x", **part}})
        assert_failure(reply, 422, "invalid_parameter", f"Watermark '{name}' parameter must be")


class TestResult:
    async def test_the_fields_of_success(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        reply = await upload(client, photo, {"resize": {"width": 48}}, name="café 1.jpg")
        document = reply.json
        assert (document["success"], document["code"]) == (True, 200)
        assert uuid.UUID(document["id"])
        for image in (document["input"], document["output"]):
            assert_described(image)
        assert document["input"]["name"] == "café 1.jpg"
        assert document["input"]["bytes"] == len(photo)
        assert document["output"]["url"].startswith("https://")
        assert set(document["timing"]) == {"fetch", "decode", "process", "encode", "store"}

    async def test_faces_are_told_where_they_were_asked_for(self, client: aiohttp.ClientSession) -> None:
        face = Path("examples/pictures/portrait.jpg").read_bytes()
        found = (await upload(client, face, {"crop": {"mode": "face"}})).json["output"]["faces"]
        assert set(found[0]) == {"left", "top", "width", "height", "score"}

    async def test_the_fields_of_failure(self, client: aiohttp.ClientSession) -> None:
        failure = assert_failure(await upload(client, b"no image"), 422, "unsupported_format")
        assert set(failure) == {"success", "code", "id", "error", "message"}


class TestFetch:
    async def test_only_json_is_accepted(self, client: aiohttp.ClientSession, source: str) -> None:
        for options in (
            {"data": {"url": f"{source}/jpeg"}},
            {"data": b"{}", "headers": {"Content-Type": "text/x"}},
        ):
            reply = await call(client, "POST", "/1.0/fetch", **options)
            assert_failure(reply, 415, "unsupported_media_type", "application/json")

    async def test_the_url_is_required(self, client: aiohttp.ClientSession) -> None:
        reply = await call(client, "POST", "/1.0/fetch", json={})
        assert_failure(reply, 422, "invalid_parameter", "Fetch 'url' parameter is required")

    async def test_binary_mode_answers_the_picture(self, client: aiohttp.ClientSession, source: str) -> None:
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
        reply = await upload(client, photo, {**request_, "response": {"mode": "binary"}})
        assert (reply.status, reply.body) == (422, b"")
        assert (reply.metadata["success"], reply.metadata["code"]) == (False, 422)
        assert reply.metadata["error"] == "invalid_parameter"

    async def test_binary_failures_before_the_body_is_read(self, service: Service) -> None:
        async with service.client(key="wrong", headers={"X-Svc-Binary": "1"}) as stranger:
            reply = await upload(stranger, b"x")
        assert (reply.status, reply.body, reply.metadata["code"]) == (401, b"", 401)

    async def test_names_in_other_scripts_travel_in_the_header(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        headers = {"X-Svc-Binary": "1"}
        reply = await upload(client, photo, name="фото 写真.jpg", headers=headers)
        assert reply.metadata["input"]["name"] == "фото 写真.jpg"

    async def test_auto_follows_accept_in_binary_mode(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        request = {"output": {"format": "auto"}, "response": {"mode": "binary"}}
        for accept, expected in (("image/avif,image/webp,*/*", "image/avif"), ("image/webp", "image/webp"),
                                 ("text/html", "image/jpeg")):  # fmt: skip
            reply = await upload(client, photo, request, headers={"Accept": accept})
            assert reply.headers["Content-Type"] == expected

    async def test_credentials_may_be_in_the_url(self, client: aiohttp.ClientSession, source: str) -> None:
        with_credentials = source.replace("://", "://user:pass@")
        assert (await fetch(client, f"{with_credentials}/jpeg?secret=1")).status == 200
        refused = await fetch(client, f"{source.replace('://', '://user:wrong@')}/jpeg?secret=1")
        assert_failure(refused, 422, "source_unreachable", "401")
        assert "wrong" not in refused.json["message"]

    async def test_private_addresses_are_refused(self, client: aiohttp.ClientSession) -> None:
        for host in ("10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]"):
            assert_failure(await fetch(client, f"http://{host}/"), 422, "source_unreachable", "public")

    async def test_extra_headers_are_sent(self, client: aiohttp.ClientSession, source: str) -> None:
        headers = {"Authorization": "Basic dXNlcjpwYXNz"}
        assert (await fetch(client, f"{source}/jpeg?secret=1", headers=headers)).status == 200
        reply = await fetch(client, f"{source}/jpeg", headers={"Host": "x"})
        assert_failure(reply, 422, "invalid_parameter", "headers")


class TestUpload:
    async def test_parts_come_in_either_order_and_file_may_be_bare(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        file = b'Content-Disposition: form-data; name="file"\r\n\r\n' + photo
        data = b'Content-Disposition: form-data; name="data"\r\n\r\n{"resize": {"width": 24}}'
        for parts in ((file, data), (data, file)):
            for kind in ("form-data", "mixed"):
                body = b"".join(b"--frontier\r\n" + part + b"\r\n" for part in parts) + b"--frontier--\r\n"
                headers = {"Content-Type": f"multipart/{kind}; boundary=frontier"}
                reply = await call(client, "POST", "/1.0/upload", data=body, headers=headers)
                assert reply.json["output"]["width"] == 24

    async def test_data_may_be_missing_or_empty(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        for document in (None, {}):
            assert (await upload(client, photo, document)).status == 200

    async def test_the_file_is_required(self, client: aiohttp.ClientSession) -> None:
        form = aiohttp.FormData({"data": "{}"}, default_to_multipart=True)
        reply = await call(client, "POST", "/1.0/upload", data=form)
        assert_failure(reply, 422, "invalid_parameter", "Upload 'file' parameter is required")

    async def test_a_url_is_not_accepted(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        reply = await upload(client, photo, {"url": "https://example.org/"})
        assert_failure(reply, 422, "invalid_parameter", "url")


class TestAccount:
    async def test_the_account_tells_its_subscription_and_quota(self, client: aiohttp.ClientSession) -> None:
        account = (await call(client, "GET", "/1.0/account")).json
        assert isinstance(account["company"], str)
        assert set(account["subscription"]) == {"name", "period"}
        quota = account["quota"]
        assert quota["total"] - quota["used"] == quota["remaining"]

    async def test_every_processed_picture_counts_one_and_failures_nothing(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        before = await used(client)
        await upload(client, photo)
        await upload(client, photo, {"resize": {"width": 0}})
        await upload(client, b"no image")
        await fetch(client, "http://10.0.0.1/")
        assert await used(client) == before + 1

    async def test_a_used_up_quota_is_402(self, tmp_path: Path, photo: bytes) -> None:
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
        async with service.client(key="", headers={"Authorization": value}) as client:
            for method, path in (("GET", "/1.0/account"), ("POST", "/1.0/fetch"), ("GET", "/1.0/nothing")):
                reply = await call(client, method, path)
                assert_failure(reply, 401, "unauthorized")
                assert "Basic" in reply.headers["WWW-Authenticate"]
                assert "Bearer" in reply.headers["WWW-Authenticate"]

    async def test_a_password_is_refused(self, service: Service) -> None:
        value = "Basic " + base64.b64encode(f"{service.key}:secret".encode()).decode()
        async with service.client(key="", headers={"Authorization": value}) as client:
            assert (await call(client, "GET", "/1.0/account")).status == 401

    async def test_plain_http_fails_and_says_why(self, service: Service) -> None:
        headers = {"Authorization": f"Bearer {service.key}"}
        async with aiohttp.ClientSession(f"http://localhost:{service.port}", headers=headers) as client:
            for path in ("/1.0/account", "/healthz", "/nothing"):
                reply = await call(client, "GET", path, allow_redirects=False)
                assert_failure(reply, 403, "https_required", "https://")

    async def test_old_tls_is_refused(self, service: Service) -> None:
        context = ssl.create_default_context(cafile=service.certificate)
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, OSError)):
            await asyncio.open_connection("localhost", service.port, ssl=context)

    async def test_keys_have_scopes_and_can_be_revoked(self, service: Service, photo: bytes) -> None:
        account = json.loads(service.imgsvc("accounts", "list", "--json"))[0]["id"]
        made = json.loads(service.imgsvc("keys", "create", account, "--scope", "account", "--json"))
        async with service.client(key=made["secret"]) as client:
            assert (await call(client, "GET", "/1.0/account")).status == 200
            assert_failure(await upload(client, photo), 403, "insufficient_scope", "process")
            service.imgsvc("keys", "revoke", made["id"])
            await asyncio.sleep(3.5)
            assert_failure(await call(client, "GET", "/1.0/account"), 401, "unauthorized")


class TestErrors:
    async def test_all_problems_are_listed_with_their_paths(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
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
        reply = await call(client, "DELETE", "/1.0/account")
        assert_failure(reply, 405, "method_not_allowed", "GET")
        assert "GET" in reply.headers["Allow"]
        assert_failure(await call(client, "GET", "/2.0/account"), 404, "not_found")
        assert_failure(await call(client, "GET", "/1.0/watermarks/x"), 404, "not_found")
        assert_failure(await call(client, "GET", "/1.0/images/x"), 404, "not_found")


class TestLimits:
    async def test_the_rate_is_limited_by_key(self, tmp_path: Path) -> None:
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

    async def test_the_default_rate(self, client: aiohttp.ClientSession) -> None:
        headers = (await call(client, "GET", "/1.0/account")).headers
        assert headers["X-RateLimit-Limit"] == "100000"
        assert all(name in headers for name in RATE_HEADERS)

    async def test_a_request_may_tighten_limits_but_not_raise_them(
        self, client: aiohttp.ClientSession, photo: bytes
    ) -> None:
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
        document = (await call(client, "GET", "/1.0/openapi.json")).json
        unversioned = [path for path in document["paths"] if not path.startswith("/1.0/")]
        assert unversioned == ["/healthz", "/readyz"]

    async def test_the_user_agent_carries_it(self, client: aiohttp.ClientSession) -> None:
        seen: list[str] = []

        async def picture(request: web.Request) -> web.Response:
            seen.append(request.headers["User-Agent"])
            return web.Response(body=encoded.png().data)

        async with serving({"/p": picture}) as url:
            await fetch(client, f"{url}/p")
        assert seen == ["imgsvc/1.0"]
