"""Databases of both kinds, each test with a fresh one; and the running service."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio

from imgsvc_http.state import accounts
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.engine import create_engine
from imgsvc_http.state.migrating import migrate
from imgsvc_http.state.vault import Vault, new_master_key
from tests.http.service_process import Service, running
from tests.support import servers

DISK_BYTES = 64 * 2**20
NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    with servers.postgresql() as url:
        yield url


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with servers.redis() as url:
        yield url


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: str) -> str:
    """Name of a database with its tables, to be copied."""
    asyncio.run(migrate(_database(postgresql_server, "template")))
    return "template"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "state.db"
    asyncio.run(migrate(f"sqlite:///{path}"))
    assert [*path.parent.iterdir()] == [path]
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty_url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database without tables."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return _database(request.getfixturevalue("postgresql_server"), f"test_{uuid4().hex}")


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a database with its tables."""
    if kind == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "state.db")
        return f"sqlite:///{tmp_path}/state.db"
    template = request.getfixturevalue("postgresql_template")
    server = request.getfixturevalue("postgresql_server")
    return _database(server, f"test_{uuid4().hex}", template=template)


def _database(server: str, name: str, *, template: str = "template0") -> str:
    """URL of a new database on a server, a copy of another one there."""

    engine = create_engine(server).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    engine.dispose()
    return server.rpartition("/")[0] + f"/{name}"


@pytest_asyncio.fixture
async def db(url: str) -> AsyncIterator[Database]:
    async with await Database.open(url) as opened:
        yield opened


@pytest_asyncio.fixture
async def account(db: Database) -> Account:
    return await accounts.create(db, company="Acme", plan="standard", period="monthly", quota=1000, now=NOW)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes, which a test can fill."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def vault() -> Vault:
    key = new_master_key()
    return Vault(lambda: [key])


_LOOPBACK = {"fetch.private_allowed": "127.0.0.1,localhost"}


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all tests that leave it as it was; loopback may be fetched from."""
    with running(tmp_path_factory.mktemp("service") / "state", _LOOPBACK) as service:
        yield service


@pytest.fixture(scope="module")
def notifying_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for webhooks, after the first of which it asks its database for work until it ends."""
    with running(tmp_path_factory.mktemp("notifying") / "state", _LOOPBACK) as service:
        yield service


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[aiohttp.ClientSession]:
    """A client with the service's first key."""
    async with service.client() as client:
        yield client
