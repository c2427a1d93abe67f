"""``imgsvc keys``: API keys of accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import (
    account_or_only_one,
    administrative,
    check_account,
    grace_option,
    json_object,
    now,
    unknown,
)
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
@administrative(note=_NOTE)
async def create(
    db: Database, _: Settings, account_id: str | None, name: str, scopes: tuple[str, ...]
) -> dict[str, Any]:
    """Create an API key. Its secret is shown once. ACCOUNT may be left out if there is only one."""
    from imgsvc_http.state import keys

    owner = await account_or_only_one(db, account_id)
    created = await keys.create(db, owner, name=name, scopes=scopes, now=now())
    return {"secret": created.secret, **json_object(created.key)}


@keys.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="List the keys of one account only.")
@administrative(empty="There are no keys.")
async def list_keys(db: Database, _: Settings, account_id: str | None) -> list[dict[str, Any]]:
    """List keys, without their secrets."""
    from imgsvc_http.state import keys

    await check_account(db, account_id)
    return [json_object(key) for key in await keys.list_all(db, account_id)]


@keys.command()
@click.argument("key_id", metavar="KEY")
@grace_option("How long the current secret keeps working. An older secret stops at once.")
@administrative(changes=True, note=_NOTE)
async def rotate(db: Database, _: Settings, key_id: str, grace: timedelta) -> dict[str, Any]:
    """Give a key a new secret, which is shown once."""
    from imgsvc_http.state import keys

    rotated = await keys.rotate(db, key_id, grace=grace, now=now())
    if rotated is None:
        raise unknown("working key", key_id)
    return {"secret": rotated.secret, **json_object(rotated.key)}


@keys.command()
@click.argument("key_id", metavar="KEY")
@administrative(changes=True)
async def revoke(db: Database, _: Settings, key_id: str) -> dict[str, Any]:
    """Revoke a key. The service refuses it at once, and on other nodes within seconds."""
    from imgsvc_http.state import keys

    if not await keys.revoke(db, key_id, now=now()):
        raise unknown("working key", key_id)
    return {"id": key_id, "revoked": True}
