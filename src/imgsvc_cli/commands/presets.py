"""``imgsvc presets``: named parts of requests, for each account."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import administrative, check_account, json_object, now
from imgsvc_cli.flags import SectionedCommand, request_document, request_flags
from imgsvc_cli.options import read_spec, spec_option
from imgsvc_core.errors import invalid

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database


@click.group()
def presets() -> None:
    """Manage the presets of accounts.

    Presets for all accounts are in the settings file.
    """


@presets.command("list")
@click.argument("account_id", metavar="ACCOUNT")
@administrative(empty="There are no presets.")
async def list_presets(db: Database, _: Settings, account_id: str) -> list[dict[str, Any]]:
    """List the presets of an account."""
    from imgsvc_http.state import presets

    await check_account(db, account_id)
    return [json_object(preset) for preset in await presets.list_all(db, account_id)]


@partial(request_flags, watermark_files=False)
@presets.command("set", cls=SectionedCommand)
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("name")
@spec_option
@administrative(changes=True)
async def set_preset(
    db: Database, _: Settings, account_id: str, name: str, spec: str | None, **flags: Any
) -> dict[str, Any]:
    """Save a part of a request under a name. It replaces a preset of the same name.

    Example: imgsvc presets set ACCOUNT card --resize 400x300 --mode fit --format webp
    """
    from imgsvc_http.state import presets

    await check_account(db, account_id)
    request = request_document(flags, read_spec(spec))
    return json_object(await presets.put(db, account_id, name, request, now()))


@presets.command()
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("name")
@administrative(changes=True)
async def delete(db: Database, _: Settings, account_id: str, name: str) -> dict[str, Any]:
    """Delete a preset. Requests that name it are refused at once, and on other nodes within seconds."""
    from imgsvc_http.state import presets

    if not await presets.remove(db, account_id, name):
        raise invalid("", f"There is no preset '{name}': see imgsvc presets list {account_id}")
    return {"name": name, "deleted": True}
