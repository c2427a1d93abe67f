"""``imgsvc signing-keys``: keys that sign URLs of pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import (
    account_or_only_one,
    administrative,
    check_account,
    json_object,
    now,
    unknown,
)

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database

_NOTE = (
    "Keep the secret: it is not shown again. Sign with it: IMGSVC_SIGNING_SECRET=... imgsvc url --key {id}"
)


@click.group("signing-keys")
def signing_keys() -> None:
    """Manage the keys that sign URLs of pictures."""


@signing_keys.command()
@click.argument("account_id", metavar="[ACCOUNT]", required=False)
@click.option("--name", default="", help="What the key is for.")
@administrative(note=_NOTE)
async def create(db: Database, settings: Settings, account_id: str | None, name: str) -> dict[str, Any]:
    """Create a signing key of an account, or of the only one. Its secret is shown once.

    To replace a key, create another one, sign with it, and revoke the old one when no page has its URLs.
    """
    from imgsvc_http.state import signing_keys
    from imgsvc_http.state.vault import open_vault

    owner = await account_or_only_one(db, account_id)
    made = await signing_keys.create(db, open_vault(settings), owner, name=name, now=now())
    return {"secret": made.secret, **json_object(made.key)}


@signing_keys.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="List the keys of one account only.")
@administrative(empty="There are no signing keys.")
async def list_keys(db: Database, _: Settings, account_id: str | None) -> list[dict[str, Any]]:
    """List signing keys, without their secrets."""
    from imgsvc_http.state import signing_keys

    await check_account(db, account_id)
    return [json_object(key) for key in await signing_keys.list_all(db, account_id)]


@signing_keys.command()
@click.argument("key_id", metavar="KEY")
@administrative(changes=True)
async def revoke(db: Database, _: Settings, key_id: str) -> dict[str, Any]:
    """Revoke a signing key. The service refuses its URLs at once, and on other nodes within seconds."""
    from imgsvc_http.state import signing_keys

    if not await signing_keys.revoke(db, key_id, now=now()):
        raise unknown("working signing key", key_id, "signing-keys")
    return {"id": key_id, "revoked": True}
