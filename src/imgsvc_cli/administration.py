"""Functions that all administrative commands share. They work on the service's database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from imgsvc_cli import printing
from imgsvc_cli.options import as_json_option
from imgsvc_cli.service_settings import service_packages, with_settings
from imgsvc_core.errors import SpecError, invalid

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database

T = TypeVar("T")
_Command = TypeVar("_Command", bound=Callable[..., Any])

_MAX_GRACE = 10 * 365 * 86_400  # seconds


def in_database(
    settings: Settings, work: Callable[[Database], Awaitable[T]], *, make: bool = False, changes: bool = False
) -> T:
    """Run a function with the database of the settings, and return its result.

    Args:
        settings: the settings, which name the database.
        work: the function.
        make: make the tables if the database has none.
        changes: the function changes data that a running service keeps in memory.

    Raises:
        SpecError: the tables belong to another version, or the encrypted values to another master key.
        TargetError: the disk is full.
    """
    import asyncio

    with service_packages():
        from imgsvc_http.runtime.shared_memory import note_change
        from imgsvc_http.state.database import Database
        from imgsvc_http.state.encrypted import check_some
        from imgsvc_http.state.failures import full_disk_named
        from imgsvc_http.state.migrating import check_tables, migrate, versions
        from imgsvc_http.state.vault import present_vault

    async def with_database() -> T:
        if make and (await versions(settings.database_url)).state == "missing":
            await migrate(settings.database_url)
        await check_tables(settings.database_url)
        async with await Database.open(settings.database_url) as db:
            await db.reading(lambda connection: check_some(connection, present_vault(settings)))
            return await work(db)

    with full_disk_named():
        done = asyncio.run(with_database())
    if changes:
        note_change(settings.server.state_folder)
    return done


def administrative(
    *, make: bool = False, changes: bool = False, note: str = "", empty: str = ""
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., None]]:
    """Make a command of a coroutine function that works on the service's database.

    The function gets the database, the settings and the arguments of the command. The object or the list of
    objects that it returns is printed: as JSON, or as a table.

    Args:
        make: as in `in_database`.
        changes: as in `in_database`.
        note: a sentence that follows the table of an object, with fields of the object in braces.
        empty: a sentence instead of the table of no objects.
    """

    def command_of(work: Callable[..., Awaitable[Any]]) -> Callable[..., None]:
        @with_settings
        @as_json_option
        @wraps(work)
        def command(settings: Settings, as_json: bool, **given: Any) -> None:
            found = in_database(settings, lambda db: work(db, settings, **given), make=make, changes=changes)
            if isinstance(found, list):
                echo_rows(found, as_json, empty=empty)
            else:
                echo_object(found, as_json, note=note.format(**found))

        return command

    return command_of


def grace_option(doc: str) -> Callable[[_Command], _Command]:
    """Return the option ``--grace``: how long a replaced secret keeps working."""
    return click.option(
        "--grace",
        type=float,
        default=86_400,
        show_default=True,
        metavar="SECONDS",
        callback=_checked_grace,
        help=doc,
    )


def _checked_grace(_context: click.Context, _option: click.Parameter, seconds: float) -> timedelta:
    if not 0 <= seconds <= _MAX_GRACE:  # true for NaN as well
        message = f"Option '--grace' must be seconds within 0 to {_MAX_GRACE} range, got {seconds:g}"
        raise invalid("grace", message)
    return timedelta(seconds=seconds)


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def unknown(what: str, id: str, command: str = "") -> SpecError:
    """Return the error for an unknown id. ``command`` lists the ids that exist."""
    command = command or f"{what.split()[-1]}s"
    return invalid("", f"There is no {what} '{id}': see imgsvc {command} list")


async def check_account(db: Database, account_id: str | None) -> None:
    """Raise `SpecError` if there is no such account, unless none is named."""
    from imgsvc_http.state import accounts

    if account_id is not None and await accounts.get(db, account_id) is None:
        raise unknown("account", account_id)


async def account_or_only_one(db: Database, account_id: str | None) -> str:
    """Return the id of the given account, or of the only account if none is given.

    Raises:
        SpecError: the account does not exist, or none is given and there are none or several.
    """
    from imgsvc_http.state import accounts

    if account_id is not None:
        await check_account(db, account_id)
        return account_id
    found = await accounts.list_all(db)
    if len(found) != 1:
        raise invalid("", f"Name the ACCOUNT, as there are {len(found)}: see imgsvc accounts list")
    return found[0].id


def json_object(value: attrs.AttrsInstance) -> dict[str, Any]:
    """Return a row of the database as JSON values."""
    return {name: _json_value(item) for name, item in attrs.asdict(value).items()}


def echo_object(facts: dict[str, Any], as_json: bool, *, note: str = "") -> None:
    """Print one object as JSON, or as a table and a note."""
    if as_json:
        printing.echo_json(facts)
        return
    click.echo(printing.table([[name, printing.words(value)] for name, value in facts.items()]))
    if note:
        click.echo(note, err=True)


def echo_rows(rows: list[dict[str, Any]], as_json: bool, *, empty: str) -> None:
    """Print objects as JSON, or as a table with a head."""
    if as_json:
        printing.echo_json(rows)
    elif rows:
        head = [name.replace("_", " ") for name in rows[0]]
        lines = [[printing.words(value) for value in row.values()] for row in rows]
        click.echo(printing.table([head, *lines]))
    else:
        click.echo(empty)


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value
