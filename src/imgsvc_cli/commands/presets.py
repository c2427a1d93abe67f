"""``imgsvc presets``: named parts of requests, for each account."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import echo_object, echo_rows, in_database, json_object, now, unknown
from imgsvc_cli.flags import SectionedCommand, request_document, request_flags
from imgsvc_cli.options import as_json_option, read_spec, spec_option
from imgsvc_cli.service_settings import with_settings
from imgsvc_core.errors import Problem, SpecError

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
@with_settings
@as_json_option
def list_presets(account_id: str, settings: Settings, as_json: bool) -> None:
    """List the presets of an account."""

    async def work(db: Database) -> list[dict[str, Any]]:
        from imgsvc_http.state import presets

        await _check_account(db, account_id)
        return [json_object(preset) for preset in await presets.list_all(db, account_id)]

    echo_rows(in_database(settings, work), as_json, empty="There are no presets.")


@partial(request_flags, watermark_files=False)
@presets.command("set", cls=SectionedCommand)
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("name")
@spec_option
@with_settings
@as_json_option
def set_preset(
    account_id: str, name: str, spec: str | None, settings: Settings, as_json: bool, **flags: Any
) -> None:
    """Save a part of a request under a name. It replaces a preset of the same name.

    Example: imgsvc presets set ACCOUNT card --resize 400x300 --mode fit --format webp
    """
    request = request_document(flags, read_spec(spec))

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import presets

        await _check_account(db, account_id)
        return json_object(await presets.put(db, account_id, name, request, now()))

    echo_object(in_database(settings, work, changes=True), as_json)


@presets.command()
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("name")
@with_settings
@as_json_option
def delete(account_id: str, name: str, settings: Settings, as_json: bool) -> None:
    """Delete a preset. Requests that name it are refused at once, and on other nodes within seconds."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import presets

        if not await presets.remove(db, account_id, name):
            message = f"There is no preset '{name}': see imgsvc presets list {account_id}"
            raise SpecError([Problem("", message)])
        return {"name": name, "deleted": True}

    echo_object(in_database(settings, work, changes=True), as_json)


async def _check_account(db: Database, account_id: str) -> None:
    from imgsvc_http.state import accounts

    if await accounts.get(db, account_id) is None:
        raise unknown("account", account_id)
