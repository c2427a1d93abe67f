"""``imgsvc signing-keys``: keys that sign URLs of pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import (
    account_or_only_one,
    echo_object,
    echo_rows,
    in_database,
    json_object,
    now,
    unknown,
)
from imgsvc_cli.options import as_json_option
from imgsvc_cli.service_settings import with_settings

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database

_NOTE = "Keep the secret: it is not shown again. Sign with it: IMGSVC_SIGNING_SECRET=... imgsvc url --key "


@click.group("signing-keys")
def signing_keys() -> None:
    """Manage the keys that sign URLs of pictures."""


@signing_keys.command()
@click.argument("account_id", metavar="[ACCOUNT]", required=False)
@click.option("--name", default="", help="What the key is for.")
@with_settings
@as_json_option
def create(account_id: str | None, name: str, settings: Settings, as_json: bool) -> None:
    """Create a signing key of an account, or of the only one. Its secret is shown once.

    To replace a key, create another one, sign with it, and revoke the old one when no page has its URLs.
    """

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import signing_keys
        from imgsvc_http.state.vault import open_vault

        owner = await account_or_only_one(db, account_id)
        made = await signing_keys.create(db, open_vault(settings), owner, name=name, now=now())
        return {"secret": made.secret, **json_object(made.key)}

    made = in_database(settings, work)
    echo_object(made, as_json, note=f"{_NOTE}{made['id']}")


@signing_keys.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="List the keys of one account only.")
@with_settings
@as_json_option
def list_keys(account_id: str | None, settings: Settings, as_json: bool) -> None:
    """List signing keys, without their secrets."""

    async def work(db: Database) -> list[dict[str, Any]]:
        from imgsvc_http.state import accounts, signing_keys

        if account_id is not None and await accounts.get(db, account_id) is None:
            raise unknown("account", account_id)
        return [json_object(key) for key in await signing_keys.list_all(db, account_id)]

    echo_rows(in_database(settings, work), as_json, empty="There are no signing keys.")


@signing_keys.command()
@click.argument("key_id", metavar="KEY")
@with_settings
@as_json_option
def revoke(key_id: str, settings: Settings, as_json: bool) -> None:
    """Revoke a signing key. The service refuses its URLs at once, and on other nodes within seconds."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import signing_keys

        if not await signing_keys.revoke(db, key_id, now=now()):
            raise unknown("working signing key", key_id, "signing-keys")
        return {"id": key_id, "revoked": True}

    echo_object(in_database(settings, work, changes=True), as_json)
