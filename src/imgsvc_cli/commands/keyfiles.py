"""``imgsvc keyfiles``: the master key that encrypts keyfiles and the secrets of accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import administrative
from imgsvc_cli.service_settings import service_packages
from imgsvc_core.errors import invalid

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database


@click.group()
def keyfiles() -> None:
    """Manage the master key that encrypts secrets."""


@keyfiles.command()
def key() -> None:
    """Print a new master key, for security.master_keys in the settings."""
    with service_packages():
        from imgsvc_http.state.vault import new_master_key
    click.echo(new_master_key())


@keyfiles.command()
@click.option(
    "--drop-old",
    is_flag=True,
    help="Do not add a new key; drop all keys but the newest, once everything is encrypted with it.",
)
@administrative()
async def rotate(db: Database, settings: Settings, drop_old: bool) -> dict[str, Any]:
    """Encrypt all keyfiles, signing keys and webhook secrets with the newest master key.

    If the state folder holds the master key, a new one is added. If the settings hold it, put a new one
    first there, restart the service, and then rotate.
    """
    from imgsvc_http.state import encrypted, vault

    if settings.security.master_keys and drop_old:
        message = "Option '--drop-old' is for keys in the state folder: take them out of the settings"
        raise invalid("--drop-old", message)
    await encrypted.check_all(db, vault.present_vault(settings))
    opened = vault.open_vault(settings)
    if settings.security.master_keys:
        return {"encrypted": await encrypted.reencrypt_all(db, opened), "dropped": 0}
    file = vault.key_file(settings)
    with vault.locked(file):
        if not drop_old:
            vault.add_master_key(file)
        count = await encrypted.reencrypt_all(db, vault.open_vault(settings))
        return {"encrypted": count, "dropped": vault.drop_old_master_keys(file) if drop_old else 0}
