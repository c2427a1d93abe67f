"""``imgsvc accounts``: accounts of the service, their quotas and webhook secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli import printing
from imgsvc_cli.administration import (
    administrative,
    check_account,
    grace_option,
    in_database,
    json_object,
    now,
    unknown,
)
from imgsvc_cli.options import as_json_option
from imgsvc_cli.service_settings import with_settings
from imgsvc_core.errors import invalid

if TYPE_CHECKING:
    from datetime import timedelta

    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database


@click.group()
def accounts() -> None:
    """Manage accounts, quotas and webhook secrets."""


@accounts.command()
@click.argument("company")
@click.option("--plan", help="Name of the subscription.")
@click.option("--period", help="Billing period of the subscription.")
@click.option("--quota", type=int, help="Pictures per calendar month.")
@administrative(make=True, note="Next, give it a key: imgsvc keys create {id}")
async def create(
    db: Database, settings: Settings, company: str, plan: str | None, period: str | None, quota: int | None
) -> dict[str, Any]:
    """Create an account, and the database if there is none. Defaults come from the settings."""
    from imgsvc_http.state import accounts

    default = settings.accounts
    account = await accounts.create(
        db,
        company=company,
        plan=default.plan if plan is None else plan,
        period=default.period if period is None else period,
        quota=default.quota if quota is None else quota,
        now=now(),
    )
    return json_object(account)


@accounts.command("list")
@administrative(empty="There are no accounts.")
async def list_accounts(db: Database, _: Settings) -> list[dict[str, Any]]:
    """List accounts and what they used this month."""
    from imgsvc_http.state import accounts

    rows = []
    for account in await accounts.list_all(db):
        usage = await accounts.usage(db, account.id, now())
        rows.append({**json_object(account), "used": usage.used if usage else 0})
    return rows


@accounts.command()
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("quota", type=int, required=False)
@administrative()
async def quota(db: Database, _: Settings, account_id: str, quota: int | None) -> dict[str, Any]:
    """Show or change the monthly quota of an account."""
    from imgsvc_http.state import accounts

    if quota is not None:
        await accounts.set_quota(db, account_id, quota)
    usage = await accounts.usage(db, account_id, now())
    if usage is None:
        raise unknown("account", account_id)
    return {"total": usage.total, "used": usage.used, "remaining": usage.remaining}


@accounts.command()
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("state", type=click.Choice(["on", "off"]), required=False)
@administrative()
async def permanent(db: Database, _: Settings, account_id: str, state: str | None) -> dict[str, Any]:
    """Show or choose whether an account's results go to the service's permanent storage.

    That storage is set by 'permanent.place'.
    """
    from imgsvc_http.state import accounts

    await check_account(db, account_id)
    if state is not None:
        await accounts.keep_results(db, account_id, state == "on")
    return {"permanent": "on" if await accounts.keeps_results(db, account_id) else "off"}


@accounts.command()
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--renew", is_flag=True, help="Replace the secret. The new one signs from now on.")
@grace_option("With --renew: how long the current secret keeps signing, too. An older secret stops at once.")
@with_settings
@as_json_option
def webhook_secret(account_id: str, renew: bool, grace: timedelta, settings: Settings, as_json: bool) -> None:
    """Show the secret that signs an account's webhooks."""
    source = click.get_current_context().get_parameter_source("grace")
    if not renew and source is not click.core.ParameterSource.DEFAULT:
        message = "Option '--grace' must come together with --renew, which replaces the secret: add --renew"
        raise invalid("grace", message)

    async def work(db: Database) -> str:
        from imgsvc_http.state import accounts
        from imgsvc_http.state.vault import open_vault

        vault = open_vault(settings)
        if renew:
            secret = await accounts.renew_webhook_secret(db, vault, account_id, grace=grace, now=now())
        else:
            secret = await accounts.webhook_secret(db, vault, account_id)
        if secret is None:
            raise unknown("account", account_id)
        return secret

    secret = in_database(settings, work, changes=renew)
    if as_json:
        printing.echo_json({"account_id": account_id, "webhook_secret": secret})
    else:
        click.echo(secret)
