"""Bringing the tables of a database up to date."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from imgsvc_core.errors import Problem, SpecError
from imgsvc_core.stores.daemon_threads import run_in_daemon_thread
from imgsvc_http.state.database import lock_for_transaction
from imgsvc_http.state.engine import open_engine

MIGRATION_LOCK = 0x696D67737663  # "imgsvc": any number that no other program locks
_MIGRATIONS = Path(__file__).parent / "migrations"


async def migrate(url: str) -> None:
    """Bring the tables of a database up to date; other nodes may do the same at the same time.

    Raises:
        SpecError: nothing answers at the URL, or a newer version has made the tables.
    """
    await run_in_daemon_thread(_migrate, url)


def _migrate(url: str) -> None:
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            lock_for_transaction(connection, MIGRATION_LOCK)
            _upgrade(connection)
            connection.commit()
    finally:
        engine.dispose()


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        message = f"The tables of the database cannot be brought up to date ({error}): use a newer imgsvc"
        raise SpecError([Problem("database.url", message)]) from error
