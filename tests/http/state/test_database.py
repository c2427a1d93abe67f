"""The database: migrations, moments, transactions, and what is told where it cannot be opened."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
import threading
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Dialect, Executable, event, insert, inspect, select, text, update
from sqlalchemy import create_engine as engine_of
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError

from imgsvc_core.errors import SpecError, TargetError
from imgsvc_http.state import accounts, database
from imgsvc_http.state.accounts import Account
from imgsvc_http.state.database import Database
from imgsvc_http.state.engine import create_engine
from imgsvc_http.state.failures import full_disk_named, is_unavailable, refuses_values
from imgsvc_http.state.migrating import migrate
from imgsvc_http.state.tables import AccountRow, Base, UtcDateTime
from tests.http.conftest import NOW
from tests.http.processes import at_once, migrate_database
from tests.http.state.tables_1_0_0 import TABLES

MIGRATIONS = Path(database.__file__).parent / "migrations"


def _differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(
        connection, opts={"version_table": "imgsvc_schema", "compare_server_default": True}
    )
    return list(compare_metadata(context, Base.metadata))


def _alembic(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def _tables(connection: Connection) -> dict[object, object]:
    """What the tables are, whatever the order of their columns."""
    found = inspect(connection)
    columns = {
        (*table, column["name"]): (str(column["type"]), column["nullable"], column["default"])
        for table, columns in found.get_multi_columns().items()
        for column in columns
    }
    return columns | {
        "options": found.get_multi_table_options(),
        "primary keys": found.get_multi_pk_constraint(),
        "foreign keys": found.get_multi_foreign_keys(),
        "indexes": found.get_multi_indexes(),
        "unique": found.get_multi_unique_constraints(),
    }


@pytest.mark.asyncio
async def test_migrations_lead_from_the_first_tables_to_the_declared_ones_and_back(db: Database) -> None:
    def migrate_there_and_back(connection: Connection) -> None:
        new = _tables(connection)
        Base.metadata.drop_all(connection)
        TABLES.create_all(connection)
        first = _tables(connection)
        config = _alembic(connection)
        command.stamp(config, "0001")
        command.upgrade(config, "head")
        assert _differences(connection) == []
        assert _tables(connection) == new
        command.downgrade(config, "0001")
        assert _tables(connection) == first

    assert await db.reading(_differences) == []
    await db.writing(migrate_there_and_back)


def test_migrating_again_keeps_what_is_there(url: str) -> None:
    async def check() -> None:
        async with await Database.open(url) as db:
            account = await accounts.create(db, company="A", plan="p", period="monthly", quota=1, now=NOW)
        await migrate(url)
        async with await Database.open(url) as db:
            assert await accounts.get(db, account.id) == account

    asyncio.run(check())


def test_nodes_that_start_together_migrate_once(empty_url: str) -> None:
    at_once(4, migrate_database, empty_url)

    async def check() -> None:
        async with await Database.open(empty_url) as db:
            assert await db.reading(_differences) == []

    asyncio.run(check())


def test_tables_of_a_newer_version_are_refused(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE imgsvc_schema SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(SpecError, match="use a newer imgsvc"):
        asyncio.run(migrate(url))


@pytest.mark.asyncio
async def test_moments_come_back_as_they_were_in_utc(db: Database) -> None:
    east = datetime(2026, 1, 1, 0, 30, 15, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    account = await accounts.create(db, company="A", plan="p", period="monthly", quota=1, now=east)
    found = await accounts.get(db, account.id)
    assert found is not None
    assert found.created_at == east
    assert found.created_at.tzinfo is UTC


@pytest.mark.asyncio
async def test_moments_need_a_time_zone(db: Database) -> None:
    with pytest.raises(StatementError, match="needs a time zone"):
        await accounts.create(db, company="A", plan="p", period="monthly", quota=1, now=datetime(2026, 1, 1))
    assert await accounts.list_all(db) == []


@given(
    st.datetimes(min_value=datetime(1900, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.timezones()),
    st.sampled_from([sqlite.dialect(), postgresql.dialect()]),
)
def test_any_moment_round_trips(moment: datetime, dialect: Dialect) -> None:
    kind = UtcDateTime()
    stored = kind.process_bind_param(moment, dialect)
    assert stored is not None
    assert (stored.tzinfo is None) == (dialect.name == "sqlite")
    assert kind.process_result_value(stored, dialect) == moment.astimezone(UTC)


@pytest.mark.asyncio
async def test_transactions_are_all_or_nothing(db: Database) -> None:
    def fail(connection: Connection) -> None:
        accounts.create_in(connection, company="A", plan="p", period="monthly", quota=1, now=NOW)
        raise ZeroDivisionError

    for durable in (True, False):
        with pytest.raises(ZeroDivisionError):
            await db.writing(fail, durable=durable)
    assert await accounts.list_all(db) == []


@pytest.mark.asyncio
async def test_who_writes_waits_for_two_commits_however_many_others_write(tmp_path: Path) -> None:
    """SQLite has one writer at a time; works that wait share a transaction, and fail each by itself."""
    began, go_on, commits = threading.Event(), threading.Event(), list[object]()

    def first(connection: Connection) -> None:
        began.set()
        assert go_on.wait(30)

    def other(connection: Connection, number: int) -> int:
        accounts.create_in(connection, company=f"{number}", plan="p", period="monthly", quota=1, now=NOW)
        return 1000 // (number % 10)

    await migrate(url := f"sqlite:///{tmp_path}/state.db")
    async with await Database.open(url) as db:
        event.listen(db.engine, "commit", commits.append)
        writing = [asyncio.create_task(db.writing(first))]
        await asyncio.to_thread(began.wait, 30)
        writing += [asyncio.create_task(db.writing(partial(other, number=number))) for number in range(300)]
        await asyncio.sleep(0)
        go_on.set()
        outcomes = await asyncio.gather(*writing, return_exceptions=True)
        assert len(commits) == 2
        assert [item for item in outcomes if isinstance(item, Exception)] == outcomes[1::10]
        assert {type(item) for item in outcomes[1::10]} == {ZeroDivisionError}
        assert sorted(int(account.company) for account in await accounts.list_all(db)) == [
            number for number in range(300) if number % 10
        ]


@pytest.mark.asyncio
async def test_who_shares_a_transaction_that_cannot_be_committed_is_told(tmp_path: Path) -> None:
    def orphan(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        connection.exec_driver_sql("CREATE TABLE child (id TEXT REFERENCES accounts (id))")
        connection.exec_driver_sql("INSERT INTO child VALUES ('nobody')")

    await migrate(url := f"sqlite:///{tmp_path}/state.db")
    async with await Database.open(url) as db:
        with pytest.raises(IntegrityError):
            await db.writing(orphan)
        await db.writing(lambda connection: connection.exec_driver_sql("SELECT 1"))


@pytest.mark.asyncio
async def test_others_read_while_somebody_writes(db: Database, account: Account) -> None:
    changed, read = threading.Event(), threading.Event()

    def change(connection: Connection) -> None:
        connection.execute(update(AccountRow).values(company="Changed"))
        changed.set()
        assert read.wait(30)

    async def company() -> str:
        return (await accounts.list_all(db))[0].company

    writing = asyncio.create_task(db.writing(change))
    await asyncio.to_thread(changed.wait, 30)
    assert await company() == "Acme"
    read.set()
    await writing
    assert await company() == "Changed"


@pytest.mark.asyncio
async def test_a_cancelled_transaction_has_ended_when_its_caller_goes_on(
    db: Database, account: Account
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def change(connection: Connection) -> None:
        connection.execute(update(AccountRow).values(company="Changed"))
        began.set()
        assert go_on.wait(30)

    writing = asyncio.create_task(db.writing(change))
    await asyncio.to_thread(began.wait, 30)
    writing.cancel()
    await asyncio.sleep(0)
    assert not writing.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert (await accounts.list_all(db))[0].company == "Changed"


def test_any_sqlite_tells_parts_of_seconds() -> None:
    """The tables of DBOS need it from Python 3.12 on."""
    with engine_of("sqlite://").connect() as connection:
        told = connection.execute(text("SELECT typeof(unixepoch('subsec') * 1000)")).scalar_one()
    assert told == "real"


def test_sqlite_is_set_for_many_processes_and_one_owner(tmp_path: Path) -> None:
    file = tmp_path / "made" / "state.db"

    async def pragmas() -> dict[str, object]:
        names = ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")
        async with await Database.open(f"sqlite:///{file}") as db:
            await db.writing(lambda _: None, durable=False)
            return await db.reading(
                lambda connection: {
                    name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names
                }
            )

    assert asyncio.run(pragmas()) == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "busy_timeout": 20_000,
        "synchronous": 2,
    }
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://localhost/x", "not 'mysql'"),
        ("nonsense", "give a URL"),
        ("sqlite://", "name a file"),
        ("sqlite:///:memory:", "name a file"),
        ("postgresql://someone:hidden-word@127.0.0.1:1/x", "cannot be opened"),
        ("sqlite:////dev/null/x.db", "cannot be made"),
    ],
)
@pytest.mark.parametrize("work", [migrate, Database.open])
def test_databases_that_cannot_be_opened(url: str, told: str, work: object) -> None:
    with pytest.raises(SpecError, match=told) as caught:
        asyncio.run(work(url))  # type: ignore[operator]
    assert caught.value.problems[0].path == "database.url"
    assert "hidden-word" not in str(caught.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named(number: int) -> None:
    with pytest.raises(TargetError, match="is full: make room on it"), full_disk_named():
        raise OSError(number, "no room")


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE]
)
def test_a_full_disk_is_named_for_sqlite_too(code: int) -> None:
    refused = sqlite3.OperationalError("database or disk is full")
    refused.sqlite_errorcode = code
    with pytest.raises(TargetError, match="is full: make room on it"), full_disk_named():
        raise OperationalError("insert", (), refused) from refused


def test_other_failures_are_no_full_disk() -> None:
    with pytest.raises(PermissionError), full_disk_named():
        raise PermissionError(errno.EACCES, "not allowed")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is no database, but long enough to look like one. " * 20)
    with pytest.raises(SpecError, match="cannot be opened"):
        asyncio.run(migrate(f"sqlite:///{tmp_path}/text.db"))


@pytest.mark.asyncio
async def test_values_that_are_refused_are_told_from_a_database_that_is_away(
    db: Database, account: Account, kind: str
) -> None:
    async def failure(statement: Executable, **values: object) -> Exception:
        with pytest.raises(Exception) as caught:  # noqa: PT011
            await db.writing(lambda connection: connection.execute(statement, values))
        assert isinstance(caught.value, Exception)
        return caught.value

    again = insert(AccountRow).values(id=account.id, company="", plan="", period="", quota=1, created_at=NOW)
    assert refuses_values(await failure(again))
    assert refuses_values(
        await failure(select(AccountRow).where(AccountRow.created_at == datetime(2026, 1, 1)))
    )
    if kind == "postgresql":
        assert refuses_values(await failure(text("SELECT CAST(:value AS TEXT)"), value="a\0b"))
        ended = text("SELECT pg_terminate_backend(pg_backend_pid())")
        away = await failure(ended)
        assert is_unavailable(away)
        assert not refuses_values(away)
        await accounts.list_all(db)  # over a new connection
        url = db.engine.url.set(drivername="postgresql")
        for gone in (url.set(port=9), url.set(database="absent")):
            with pytest.raises(OperationalError) as caught:
                create_engine(gone.render_as_string(hide_password=False)).connect()
            assert not refuses_values(caught.value)
            assert is_unavailable(caught.value)
