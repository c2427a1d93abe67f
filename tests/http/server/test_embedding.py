"""The service as a part of another aiohttp application, below a prefix."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio
from aiohttp import web

from imgsvc_core.errors import ImgsvcError
from imgsvc_http import Settings, create_app
from imgsvc_http.runtime.clock import now
from imgsvc_http.server.certificate import tls_context
from imgsvc_http.services import SERVICES
from imgsvc_http.settings import ServerSettings, WorkersSettings
from imgsvc_http.state import first_account
from tests.http.calls import RATE_HEADERS, assert_failure, call, upload
from tests.support import encoded
from tests.support.processes import fork_servers_of
from tests.support.servers import free_ports

pytestmark = pytest.mark.asyncio(loop_scope="module")


@attrs.frozen
class Embedded:
    """An application with the service below ``/images``: over TLS, and without it on another port."""

    url: str
    plain_url: str
    client: aiohttp.ClientSession


async def home(request: web.Request) -> web.Response:
    return web.Response(text="home")


async def broken(request: web.Request) -> web.Response:
    raise web.HTTPGone(text="not yours")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Embedded]:
    """It leaves nothing open when it ends."""
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
    servers = fork_servers_of(os.getpid())
    with free_ports(2) as (port, plain):
        async with embedded_service(tmp_path_factory.mktemp("embedding") / "state", port, plain) as running:
            yield running
    assert fork_servers_of(os.getpid()) == servers
    gc.collect()
    assert [message for message in told if message.startswith("Unclosed")] == []


@contextlib.asynccontextmanager
async def embedded_service(state: Path, port: int, plain: int) -> AsyncIterator[Embedded]:
    url = f"https://localhost:{port}/images"
    server = ServerSettings(state_folder=state, base_url=url)
    service = create_app(Settings(server=server, workers=WorkersSettings(number=1)))
    app = web.Application(client_max_size=1000)
    app.add_routes([web.get("/", home), web.get("/broken", broken)])
    app.add_subapp("/images/", service)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls_context(server)).start()
    await web.TCPSite(runner, "127.0.0.1", plain).start()
    key = await first_account.create(service[SERVICES].db, Settings().accounts, now())
    trust = ssl.create_default_context(cafile=state / "localhost.pem")
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=trust), headers={"Authorization": f"Bearer {key}"}
    ) as client:
        yield Embedded(f"https://localhost:{port}", f"http://127.0.0.1:{plain}", client)
    await runner.cleanup()


async def test_a_picture_is_found_at_its_url(embedded: Embedded) -> None:
    reply = await service_upload(embedded)
    assert reply.status == 200, reply.json
    output = reply.json["output"]
    assert output["url"].startswith(f"{embedded.url}/images/1.0/images/")
    found = await call(embedded.client, "GET", output["url"])
    assert (found.status, found.picture.format, len(found.body)) == (200, "JPEG", output["bytes"])


async def test_binary_answers_are_the_same_below_a_prefix(embedded: Embedded) -> None:
    reply = await service_upload(embedded, headers={"X-Svc-Binary": "1"})
    assert (reply.status, reply.picture.format) == (200, "JPEG")
    found = await call(embedded.client, "GET", reply.metadata["output"]["url"])
    assert found.body == reply.body
    refused = await call(
        embedded.client, "POST", f"{embedded.url}/images/1.0/fetch", headers={"X-Svc-Binary": "1"}, data=b"{"
    )
    assert (refused.status, refused.body) == (415, b"")
    assert refused.metadata["code"] == 415


async def test_the_limits_of_the_application_around_are_not_the_services(embedded: Embedded) -> None:
    """It takes bodies of 1,000 bytes."""
    assert len(encoded.jpeg().data) > 1000
    document = {"url": "nowhere", "headers": {"X-Long": "x" * 2000}}
    reply = await call(embedded.client, "POST", f"{embedded.url}/images/1.0/fetch", json=document)
    assert_failure(reply, 422, "invalid_parameter", "Fetch 'url' parameter")


async def test_the_description_names_the_address_with_the_prefix(embedded: Embedded) -> None:
    reply = await call(embedded.client, "GET", f"{embedded.url}/images/1.0/openapi.json")
    assert [server["url"] for server in reply.json["servers"]] == [f"{embedded.url}/images"]


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [("/", 200, "home"), ("/broken", 410, "not yours"), ("/1.0/account", 404, "404: Not Found")],
)
async def test_the_rest_of_the_application_is_left_alone(
    path: str, status: int, text: str, embedded: Embedded
) -> None:
    for url in (embedded.url, embedded.plain_url):
        async with embedded.client.get(url + path) as answer:
            assert (answer.status, await answer.text()) == (status, text)
            assert not {*RATE_HEADERS, "X-Request-Id"} & set(answer.headers)
            assert answer.headers["Server"] != "imgsvc"


async def test_what_the_service_does_not_know_is_answered_as_its_errors_are(embedded: Embedded) -> None:
    for path in ("/images/nothing", "/images/1.0/nothing", "/images/1.0"):
        reply = await call(embedded.client, "GET", embedded.url + path)
        assert_failure(reply, 404, "not_found")


async def test_its_address_leads_to_its_playground(embedded: Embedded) -> None:
    reply = await call(embedded.client, "GET", embedded.url + "/images/")
    assert (reply.status, b"<title>" in reply.body) == (200, True)


async def test_the_service_is_spoken_to_over_tls_only(embedded: Embedded) -> None:
    reply = await call(embedded.client, "GET", f"{embedded.plain_url}/images/1.0/account")
    assert_failure(reply, 403, "https_required")


async def test_a_second_service_in_the_process_is_refused(embedded: Embedded, tmp_path: Path) -> None:
    """Its webhooks would be put into one database, and be looked for in the other."""
    state = tmp_path / "second"
    runner = web.AppRunner(
        create_app(Settings(server=ServerSettings(state_folder=state), workers=WorkersSettings(number=1)))
    )
    with pytest.raises(ImgsvcError, match="one service in a process"):
        await runner.setup()
    await runner.cleanup()
    assert not state.exists()
    assert (await service_upload(embedded)).status == 200


async def service_upload(embedded: Embedded, **options: Any) -> Any:
    return await upload(
        embedded.client, encoded.jpeg().data, path=f"{embedded.url}/images/1.0/upload", **options
    )
