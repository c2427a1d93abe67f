"""Bringing the tables of a database up to date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs
from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect

from imgsvc_core.errors import SpecError, invalid
from imgsvc_http.runtime.blocking import run_in_daemon_thread
from imgsvc_http.state.database import lock_for_transaction
from imgsvc_http.state.engine import is_missing, open_engine
from imgsvc_http.state.tables import Base

if TYPE_CHECKING:
    from alembic.config import Config

State = Literal["current", "outdated", "newer", "missing"]
MIGRATION_LOCK = 0x696D67737663  # "imgsvc": any number that no other program locks
_MIGRATIONS = Path(__file__).parent / "migrations"
VERSION_TABLE = "imgsvc_schema"
_VERSION = Table(  # as alembic makes it
    VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


@attrs.frozen
class Versions:
    """The version that the tables of a database have, and the newest one that is known here."""

    present: str | None
    newest: str
    state: State


async def migrate(url: str) -> None:
    """Bring the tables of a database up to date. Several nodes may do so at the same time.

    Raises:
        SpecError: nothing answers at the URL, or a newer version has made the tables.
    """
    await run_in_daemon_thread(migrate_blocking, url)


async def versions(url: str) -> Versions:
    """Return the version of the tables of a database. Nothing is made or changed.

    Raises:
        SpecError: nothing answers at the URL.
    """
    return await run_in_daemon_thread(_versions, url)


async def check_tables(url: str) -> None:
    """Raise `SpecError` unless the tables of a database are those of this version of imgsvc."""
    found = await versions(url)
    if found.state == "missing":
        raise _wrong_tables(
            "does not exist: make it with imgsvc accounts create or imgsvc db upgrade, or start imgsvc serve"
        )
    if found.state == "newer":
        raise _wrong_tables(f"has tables of version {found.present}: use a newer imgsvc")
    if found.state == "outdated":
        versions_ = f"has tables of version {found.present}, and {found.newest} is needed"
        raise _wrong_tables(f"{versions_}: run imgsvc db upgrade, or start imgsvc serve")


def _wrong_tables(how: str) -> SpecError:
    return invalid("database.url", f"The database {how}.")


def _versions(url: str) -> Versions:
    known = _known()
    if is_missing(url):
        return Versions(None, known[-1], "missing")
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            present = _present(connection)
    finally:
        engine.dispose()
    if present is None:
        return Versions(None, known[-1], "missing")
    state: State = "current" if present == known[-1] else "outdated" if present in known else "newer"
    return Versions(present, known[-1], state)


def _known() -> list[str]:
    """Return the versions that the names of the migrations begin with, the newest last."""
    return sorted(path.stem.partition("_")[0] for path in _MIGRATIONS.glob("versions/[0-9]*.py"))


def _present(connection: Connection) -> str | None:
    """Return the version of the tables, without alembic, which takes longer to import than to find it."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()


def migrate_blocking(url: str) -> None:
    """Bring the tables of a database up to date, in the thread of the caller."""
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            lock_for_transaction(connection, MIGRATION_LOCK)
            present = _present(connection)
            if present is None:
                _create(connection)
            elif present != _known()[-1]:
                _upgrade(connection)
            connection.commit()
    finally:
        engine.dispose()


def _create(connection: Connection) -> None:
    """Make the declared tables. Without alembic the first start is faster and needs 12 MB less."""
    Base.metadata.create_all(connection, checkfirst=False)
    _VERSION.create(connection)
    connection.execute(insert(_VERSION).values(version_num=_known()[-1]))


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.util import CommandError

    config = _config()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        message = f"The tables of the database cannot be brought up to date ({error}): use a newer imgsvc"
        raise invalid("database.url", message) from error


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config
