"""The first start of a service on a database that others work with as well."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from sqlalchemy import text

from imgsvc_http import Settings, create_app
from imgsvc_http.settings import DatabaseSettings, ServerSettings, WorkersSettings
from imgsvc_http.state.engine import create_engine

_MAKING_INDEXES = text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE query LIKE '%CONCURRENTLY%' AND state = 'active' AND pid <> pg_backend_pid()"
)


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
async def test_making_tables_waits_for_transactions_and_holds_nobody_up(
    empty_url: str, tmp_path: Path
) -> None:
    """The transaction that is waited for ends on the same loop, as those of the service itself do."""
    settings = Settings(
        server=ServerSettings(state_folder=tmp_path / "state"),
        database=DatabaseSettings(url=empty_url),
        workers=WorkersSettings(number=1),
    )
    runner = web.AppRunner(create_app(settings))
    engine = create_engine(empty_url)
    with engine.connect() as reader, engine.connect() as watcher:
        watcher.execution_options(isolation_level="AUTOCOMMIT")
        reader.execution_options(isolation_level="REPEATABLE READ")
        reader.execute(text("SELECT 1"))
        starting = asyncio.create_task(runner.setup())
        while not watcher.execute(_MAKING_INDEXES).scalar_one():
            assert not starting.done()
            await asyncio.sleep(0.05)
        reader.rollback()
        await starting
        await runner.cleanup()
    engine.dispose()
