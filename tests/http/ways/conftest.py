"""A service with origins, keys and presets, and what signs URLs for it."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import zipfile
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio
from yarl import URL

from imgsvc_urls import Signer
from tests.http.calls import Reply, call
from tests.http.service_process import Service, running
from tests.http.ways.web_origin import Page, WebOrigin, web_origin
from tests.support import encoded
from tests.support.commands import run_command

CONFIG = """
[presets.card]
resize = {width = 30, height = 20, mode = "fit"}
output = {format = "png"}

[presets.auto.output]
format = "auto"
"""


@attrs.frozen
class Site:
    """A running service, a client without an API key, and what signs for it."""

    service: Service
    client: aiohttp.ClientSession
    signer: Signer
    photos: Path
    web: WebOrigin

    async def get(self, url: str, *, method: str = "GET", **headers: str) -> Reply:
        """Get a URL without any change of it. Underscores in names of headers stand for hyphens."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        address: Any = URL(f"{self.service.url}{url}", encoded=True)
        return await call(self.client, method, address, headers=given, skip_auto_headers=("Accept",))

    async def picture(
        self, source: str, *, method: str = "GET", headers: Any = None, **options: Any
    ) -> Reply:
        """Get the picture of a signed URL."""
        return await self.get(self.signer.url(source, **options), method=method, **(headers or {}))

    async def unsigned(self, path: str) -> Reply:
        return await self.get(f"/1.0/image/unsigned{path}")

    async def used(self) -> int:
        async with self.service.client() as client:
            return int((await call(client, "GET", "/1.0/account")).json["quota"]["used"])


async def at_once(
    client: aiohttp.ClientSession, page: Page, calls: Iterable[Coroutine[Any, Any, Reply]]
) -> list[Reply]:
    """The answers to calls of a client, for whose page the service waits until it has all of them."""
    page.released, asked = threading.Event(), list(calls)
    await asyncio.gather(*(call(client, "GET", "/healthz") for _ in asked))  # a connection for each
    tasks = [asyncio.create_task(each) for each in asked]
    for _ in range(20):  # before it answers, the service reads what was sent before
        await call(client, "GET", "/healthz")
    page.released.set()
    return await asyncio.gather(*tasks)


@pytest.fixture(scope="session")
def web() -> Iterator[WebOrigin]:
    with web_origin() as origin:
        yield origin


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin") / "photos"
    (folder / "deep").mkdir(parents=True)
    for name, made in {
        "photo.jpg": encoded.jpeg(),
        "deep/ü %.png": encoded.png_alpha(),
        "moving.gif": encoded.gif_animated(),
    }.items():
        (folder / name).write_bytes(made.data)
    (folder / "broken.jpg").write_bytes(encoded.jpeg().data[:300])
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "text.jpg").write_text("no picture")
    (folder.parent / "secret.jpg").write_bytes(encoded.jpeg().data)
    (folder / "link.jpg").symlink_to(folder.parent / "secret.jpg")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    with zipfile.ZipFile(folder.parent / "archive.zip", "w") as archive:
        archive.write(folder / "photo.jpg", "deep/photo.jpg")
    return folder


@pytest.fixture(scope="session")
def delivering(photos: Path, web: WebOrigin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with origins of each kind."""
    folder = tmp_path_factory.mktemp("delivering")
    (folder / "imgsvc.toml").write_text(CONFIG)
    origins = {
        "photos": f"file://{photos}",
        "archive": f"zip://deep::file://{photos.parent}/archive.zip",
        "web": f"{web.url}/pictures/",
        "away": "http://127.0.0.1:9/pictures",
    }
    settings = {
        "delivery.origins": json.dumps(origins),
        "fetch.private_allowed": "127.0.0.1",
        "rate.pictures": 10**6,
    }
    with running(folder / "state", settings, config=folder / "imgsvc.toml") as service:
        yield service


@pytest.fixture(scope="session")
def signer(delivering: Service) -> Signer:
    return signer_for(delivering)


def signer_for(service: Service, environment: Mapping[str, str] = os.environ) -> Signer:
    """What signs with a new key of the service's first account."""
    accounts = service.imgsvc("accounts", "list", "--json", environment=environment)
    made = ("signing-keys", "create", json.loads(accounts)[0]["id"], "--json")
    key = json.loads(service.imgsvc(*made, environment=environment))
    return Signer("", key["id"], key["secret"])


def new_account(state: Path) -> str:
    """The id of a new account of a service that does not run yet."""
    environment = os.environ | {"IMGSVC_SERVER_STATE_FOLDER": str(state)}
    made = run_command("accounts", "create", "Page", "--json", environment=environment)
    return str(json.loads(made)["id"])


@pytest_asyncio.fixture
async def site(delivering: Service, signer: Signer, photos: Path, web: WebOrigin) -> AsyncIterator[Site]:
    async with delivering.client(key="") as client:
        yield Site(delivering, client, signer, photos, web)
        web.pages.clear()
        web.log.clear()
