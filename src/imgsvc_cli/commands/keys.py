"""``imgsvc keys``: API keys of accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import (
    account_or_only_one,
    echo_object,
    echo_rows,
    grace_option,
    in_database,
    json_object,
    now,
    unknown,
)
from imgsvc_cli.options import as_json_option
from imgsvc_cli.service_settings import with_settings
from imgsvc_http.state.scopes import DEFAULT_SCOPES, SCOPES

if TYPE_CHECKING:
    from datetime import timedelta

    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database

_NOTE = "Keep the secret: it is not shown again."


@click.group()
def keys() -> None:
    """Manage the API keys of accounts."""


@keys.command()
@click.argument("account_id", metavar="[ACCOUNT]", required=False)
@click.option("--name", default="", help="What the key is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(list(SCOPES)),
    default=DEFAULT_SCOPES,
    show_default=True,
    help="What it may do; can be repeated.",
)
@with_settings
@as_json_option
def create(
    account_id: str | None, name: str, scopes: tuple[str, ...], settings: Settings, as_json: bool
) -> None:
    """Create an API key. Its secret is shown once. ACCOUNT may be left out if there is only one."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import keys

        owner = await account_or_only_one(db, account_id)
        created = await keys.create(db, owner, name=name, scopes=scopes, now=now())
        return {"secret": created.secret, **json_object(created.key)}

    echo_object(in_database(settings, work), as_json, note=_NOTE)


@keys.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="List the keys of one account only.")
@with_settings
@as_json_option
def list_keys(account_id: str | None, settings: Settings, as_json: bool) -> None:
    """List keys, without their secrets."""

    async def work(db: Database) -> list[dict[str, Any]]:
        from imgsvc_http.state import accounts, keys

        if account_id is not None and await accounts.get(db, account_id) is None:
            raise unknown("account", account_id)
        return [json_object(key) for key in await keys.list_all(db, account_id)]

    echo_rows(in_database(settings, work), as_json, empty="There are no keys.")


@keys.command()
@click.argument("key_id", metavar="KEY")
@grace_option("How long the current secret keeps working. An older secret stops at once.")
@with_settings
@as_json_option
def rotate(key_id: str, grace: timedelta, settings: Settings, as_json: bool) -> None:
    """Give a key a new secret, which is shown once."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import keys

        rotated = await keys.rotate(db, key_id, grace=grace, now=now())
        if rotated is None:
            raise unknown("working key", key_id)
        return {"secret": rotated.secret, **json_object(rotated.key)}

    echo_object(in_database(settings, work, changes=True), as_json, note=_NOTE)


@keys.command()
@click.argument("key_id", metavar="KEY")
@with_settings
@as_json_option
def revoke(key_id: str, settings: Settings, as_json: bool) -> None:
    """Revoke a key. The service refuses it at once, and on other nodes within seconds."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import keys

        if not await keys.revoke(db, key_id, now=now()):
            raise unknown("working key", key_id)
        return {"id": key_id, "revoked": True}

    echo_object(in_database(settings, work, changes=True), as_json)
