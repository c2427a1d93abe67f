"""Keys and TLS, and how errors are told."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl

import aiohttp
import pytest

from tests.http.calls import assert_failure, call, upload
from tests.http.service_process import Service

pytestmark = pytest.mark.asyncio(loop_scope="module")


class TestAuthentication:
    async def test_basic_with_an_empty_password_and_bearer(self, service: Service) -> None:
        """Both forms of authentication do."""
        for value in (
            f"Bearer {service.key}",
            f"BEARER {service.key}",
            "Basic " + base64.b64encode(f"{service.key}:".encode()).decode(),
        ):
            async with service.client(key="", headers={"Authorization": value}) as client:
                assert (await call(client, "GET", "/1.0/account")).status == 200

    @pytest.mark.parametrize(
        "value",
        ["", "Bearer", "Bearer wrong", "Basic !!!", "Basic d3Jvbmc6", "Digest x", "Bearer é", "Basic é"],
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
                assert reply.headers["Connection"] == "close"

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
