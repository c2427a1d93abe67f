"""The endpoints, one by one."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.http.calls import Reply, assert_failure, call, fetch, upload, used
from tests.http.service_process import Service, running
from tests.http.sources import serving
from tests.http.state.test_keyfiles import KEYFILE
from tests.support import encoded

pytestmark = pytest.mark.asyncio(loop_scope="module")

SIGNALS = pytest.mark.parametrize(
    ("headers", "mode"),
    [
        ({"X-Svc-Binary": "1"}, {"mode": "binary"}),
        ({"X-Svc-Binary": "1"}, {}),
        ({"X-Svc-Binary": "True"}, {}),
        ({}, {"mode": "binary"}),
    ],
    ids=["both", "header", "header-true", "mode"],
)


def assert_binary_failure(reply: Reply, status: int, slug: str) -> dict[str, Any]:
    """An error that is in the header, with no body."""
    metadata: dict[str, Any] = reply.metadata
    assert (reply.status, metadata["code"], metadata["error"]) == (status, status, slug), metadata
    assert (metadata["success"], reply.body) == (False, b"")
    return metadata


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
        assert_failure(reply, 422, "invalid_parameter", "Fetch 'url' parameter must be string")

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

    @SIGNALS
    async def test_either_signal_is_enough(
        self, headers: dict[str, str], mode: dict[str, str], client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """Header or mode ask for a binary answer, as both together do."""
        reply = await upload(client, photo, {"response": mode}, headers=headers)
        assert reply.headers["Content-Type"] == "image/jpeg"
        assert reply.picture.format == "JPEG"

    @pytest.mark.parametrize("request_", [{"resize": {"width": -1}}, {"nonsense": 1}])
    async def test_binary_failures_have_no_body(
        self, request_: dict[str, Any], client: aiohttp.ClientSession, photo: bytes
    ) -> None:
        """A failed binary call has its metadata in the header and no body."""
        reply = await upload(client, photo, {**request_, "response": {"mode": "binary"}})
        assert_binary_failure(reply, 422, "invalid_parameter")

    @SIGNALS
    @pytest.mark.parametrize("endpoint", ["fetch", "upload"])
    @pytest.mark.parametrize(
        ("key", "part"),
        [("webhook", {"url": "https://example.org/"}),
         ("store", {"provider": "aws", "key": "k", "secret": "s", "bucket": "pictures", "region": "eu-1"})],
    )  # fmt: skip
    async def test_binary_mode_does_not_go_with_webhooks_and_stores(
        self,
        key: str,
        part: dict[str, str],
        endpoint: str,
        headers: dict[str, str],
        mode: dict[str, str],
        client: aiohttp.ClientSession,
        source: str,
        photo: bytes,
    ) -> None:
        """Nothing is done, by whichever signal the binary answer is asked for."""
        request, before = {key: part, "response": mode}, await used(client)
        if endpoint == "fetch":
            document = {"url": f"{source}/jpeg", **request}
            reply = await call(client, "POST", "/1.0/fetch", json=document, headers=headers)
        else:
            reply = await upload(client, photo, request, headers=headers)
        metadata = assert_binary_failure(reply, 422, "invalid_parameter")
        (error,) = metadata["errors"]
        assert error["path"] == ("response.mode" if mode else "X-Svc-Binary")  # what was sent
        assert f"together with {key}" in error["message"]
        assert await used(client) == before

    @SIGNALS
    async def test_a_binary_answer_for_an_upload_without_its_file(
        self, headers: dict[str, str], mode: dict[str, str], client: aiohttp.ClientSession
    ) -> None:
        """The failure is in the header, by whichever signal the binary answer is asked for."""
        form = aiohttp.FormData({"data": json.dumps({"response": mode})}, default_to_multipart=True)
        reply = await call(client, "POST", "/1.0/upload", data=form, headers=headers)
        metadata = assert_binary_failure(reply, 422, "invalid_parameter")
        assert "Upload 'file' parameter must be an image" in metadata["message"]

    async def test_a_binary_answer_for_a_source_that_is_not_there(
        self, client: aiohttp.ClientSession, source: str
    ) -> None:
        """Failures after the request was accepted are in the header as well."""
        request = {"url": f"{source}/jpeg?secret=1", "response": {"mode": "binary"}}
        reply = await call(client, "POST", "/1.0/fetch", json=request, headers={"X-Svc-Binary": "1"})
        assert_binary_failure(reply, 422, "source_unreachable")

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
        assert_binary_failure(reply, 401, "unauthorized")

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
        many = {f"X-Header-{number}": "1" for number in range(32)}
        assert (await fetch(client, f"{source}/jpeg", headers=many)).status == 200
        for wrong in ({"Host": "x"}, {**many, "X-Header-32": "1"}):
            reply = await fetch(client, f"{source}/jpeg", headers=wrong)
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
        assert_failure(reply, 422, "invalid_parameter", "Upload 'file' parameter must be an image")

    async def test_a_url_is_not_accepted(self, client: aiohttp.ClientSession, photo: bytes) -> None:
        """An upload has no URL."""
        reply = await upload(client, photo, {"url": "https://example.org/"})
        assert_failure(reply, 422, "invalid_parameter", "url")


class TestAccount:
    async def test_the_account_tells_its_subscription_and_quota(self, service: Service, photo: bytes) -> None:
        """Company, plan, period and quota are those that the account was made with, and what was used."""
        values = ("--plan", "gold", "--period", "yearly", "--quota", "77")
        made = json.loads(service.imgsvc("accounts", "create", "Zoë & Söhne", *values, "--json"))
        key = json.loads(service.imgsvc("keys", "create", made["id"], "--json"))["secret"]
        async with service.client(key=key) as client:
            for _ in range(3):
                assert (await upload(client, photo)).status == 200
            account = await call(client, "GET", "/1.0/account")
        assert account.json == {
            "success": True,
            "code": 200,
            "company": "Zoë & Söhne",
            "subscription": {"name": "gold", "period": "yearly"},
            "quota": {"total": 77, "used": 3, "remaining": 74},
        }

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
