"""Commands that look after the accounts, keys and master key of a service, by way of its database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from imgsvc_cli import printing
from imgsvc_cli.service_settings import needs_service, with_settings
from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.state.scopes import DEFAULT_SCOPES, SCOPES

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database

T = TypeVar("T")

_MOST_GRACE = 10 * 365 * 86_400
_AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def accounts() -> None:
    """Accounts of the service, their quotas and webhook secrets."""


@accounts.command("create")
@click.argument("company")
@click.option("--plan", help="Name of the subscription.")
@click.option("--period", help="Billing period of the subscription.")
@click.option("--quota", type=int, help="Pictures in a calendar month.")
@with_settings
@_AS_JSON
def create_account(
    company: str, plan: str | None, period: str | None, quota: int | None, settings: Settings, as_json: bool
) -> None:
    """Create an account; what is not given comes from the settings."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import accounts

        default = settings.accounts
        account = await accounts.create(
            db,
            company=company,
            plan=default.plan if plan is None else plan,
            period=default.period if period is None else period,
            quota=default.quota if quota is None else quota,
            now=_now(),
        )
        return _plain(account)

    found = _run(settings, work)
    _show(found, as_json, note=f"Next, give it a key: imgsvc keys create {found['id']}")


@accounts.command("list")
@with_settings
@_AS_JSON
def list_accounts(settings: Settings, as_json: bool) -> None:
    """List the accounts, and what they used this month."""

    async def work(db: Database) -> list[dict[str, Any]]:
        from imgsvc_http.state import accounts

        rows = []
        for account in await accounts.list_all(db):
            used = await accounts.usage(db, account.id, _now())
            rows.append({**_plain(account), "used": used.used if used else 0})
        return rows

    _show_all(_run(settings, work), as_json, none="There are no accounts.")


@accounts.command("quota")
@click.argument("account_id", metavar="ACCOUNT")
@click.argument("quota", type=int, required=False)
@with_settings
@_AS_JSON
def quota(account_id: str, quota: int | None, settings: Settings, as_json: bool) -> None:
    """Show the quota of an account for this month, or change it from now on."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import accounts

        if quota is not None:
            await accounts.set_quota(db, account_id, quota)
        found = await accounts.usage(db, account_id, _now())
        if found is None:
            raise _no("account", account_id)
        return {"total": found.total, "used": found.used, "remaining": found.remaining}

    _show(_run(settings, work), as_json)


@accounts.command("webhook-secret")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--renew", is_flag=True, help="Make a new one; the old one signs nothing any more.")
@with_settings
@_AS_JSON
def webhook_secret(account_id: str, renew: bool, settings: Settings, as_json: bool) -> None:
    """Show the secret by which receivers verify an account's notifications."""

    async def work(db: Database) -> str:
        from imgsvc_http.state import accounts
        from imgsvc_http.state.vault import open_vault

        get = accounts.renew_webhook_secret if renew else accounts.webhook_secret
        secret = await get(db, open_vault(settings), account_id)
        if secret is None:
            raise _no("account", account_id)
        return secret

    secret = _run(settings, work)
    if as_json:
        printing.echo_json({"account_id": account_id, "webhook_secret": secret})
    else:
        click.echo(secret)


@click.group()
def keys() -> None:
    """API keys of accounts."""


@keys.command("create")
@click.argument("account_id", metavar="ACCOUNT")
@click.option("--name", default="", help="What the key is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(list(SCOPES)),
    default=DEFAULT_SCOPES,
    show_default=True,
    help="What it may do; may be repeated.",
)
@with_settings
@_AS_JSON
def create_key(
    account_id: str, name: str, scopes: tuple[str, ...], settings: Settings, as_json: bool
) -> None:
    """Create a key of an account. Its secret is shown only now."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import accounts, keys

        if await accounts.get(db, account_id) is None:
            raise _no("account", account_id)
        made = await keys.create(db, account_id, name=name, scopes=scopes, now=_now())
        return {"secret": made.secret, **_plain(made.key)}

    _show(_run(settings, work), as_json, note="Keep the secret: it is not shown again.")


@keys.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="Those of one account only.")
@with_settings
@_AS_JSON
def list_keys(account_id: str | None, settings: Settings, as_json: bool) -> None:
    """List keys, without their secrets."""

    async def work(db: Database) -> list[dict[str, Any]]:
        from imgsvc_http.state import accounts, keys

        if account_id is not None and await accounts.get(db, account_id) is None:
            raise _no("account", account_id)
        return [_plain(key) for key in await keys.list_all(db, account_id)]

    _show_all(_run(settings, work), as_json, none="There are no keys.")


@keys.command("rotate")
@click.argument("key_id", metavar="KEY")
@click.option(
    "--grace",
    type=float,
    default=86_400,
    show_default=True,
    metavar="SECONDS",
    help="How long the present secret works besides the new one; one before it ends at once.",
)
@with_settings
@_AS_JSON
def rotate_key(key_id: str, grace: float, settings: Settings, as_json: bool) -> None:
    """Give a key a new secret. It is shown only now."""
    if not 0 <= grace <= _MOST_GRACE:  # nor is NaN
        message = f"Option '--grace' must be seconds within 0 to {_MOST_GRACE} range, got {grace:g}"
        raise SpecError([Problem("grace", message)])

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import keys

        made = await keys.rotate(db, key_id, grace=timedelta(seconds=grace), now=_now())
        if made is None:
            raise _no("working key", key_id)
        return {"secret": made.secret, **_plain(made.key)}

    _show(_run(settings, work), as_json, note="Keep the secret: it is not shown again.")


@keys.command("revoke")
@click.argument("key_id", metavar="KEY")
@with_settings
@_AS_JSON
def revoke_key(key_id: str, settings: Settings, as_json: bool) -> None:
    """End a key for good; a running service notices within seconds."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import keys

        if not await keys.revoke(db, key_id, now=_now()):
            raise _no("working key", key_id)
        return {"id": key_id, "revoked": True}

    _show(_run(settings, work), as_json)


@click.group()
def keyfiles() -> None:
    """The master key that encrypts keyfiles and webhook secrets."""


@keyfiles.command("key")
def new_key() -> None:
    """Print a new master key, for security.master_keys in the settings."""
    try:
        from imgsvc_http.state.vault import new_master_key
    except ImportError as error:
        raise needs_service(error) from error
    click.echo(new_master_key())


@keyfiles.command("rotate")
@click.option(
    "--drop-old",
    is_flag=True,
    help="Make no new key, but drop the old ones once all is encrypted with the newest.",
)
@with_settings
@_AS_JSON
def rotate_master_key(drop_old: bool, settings: Settings, as_json: bool) -> None:
    """Encrypt all that is kept with the newest master key.

    A new one is made where the state folder holds the master key; where the settings do, put the new one
    first there, restart the service, and then rotate.
    """

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.state import keyfiles, vault

        if settings.security.master_keys and drop_old:
            message = "Option '--drop-old' is for keys in the state folder: take them out of the settings"
            raise SpecError([Problem("--drop-old", message)])
        await keyfiles.check_all(db, vault.present_vault(settings))
        opened = vault.open_vault(settings)
        if settings.security.master_keys:
            return {"encrypted": await keyfiles.reencrypt_all(db, opened), "dropped": 0}
        file = vault.key_file(settings)
        with vault.changing(file):
            if not drop_old:
                vault.add_master_key(file)
            count = await keyfiles.reencrypt_all(db, vault.open_vault(settings))
            return {"encrypted": count, "dropped": vault.drop_old_master_keys(file) if drop_old else 0}

    _show(_run(settings, work), as_json)


def _run(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Do some work with the database of the settings, made up to date."""
    import asyncio

    try:
        from imgsvc_http.state.database import Database, migrate
    except ImportError as error:
        raise needs_service(error) from error

    async def with_database() -> T:
        await migrate(settings.database_url)
        async with await Database.open(settings.database_url) as db:
            return await work(db)

    return asyncio.run(with_database())


def _now() -> datetime:
    return datetime.now(UTC)


def _no(what: str, name: str) -> SpecError:
    return SpecError([Problem("", f"There is no {what} '{name}': see imgsvc {what.split()[-1]}s list")])


def _plain(value: attrs.AttrsInstance) -> dict[str, Any]:
    return {name: _json(item) for name, item in attrs.asdict(value).items()}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value


def _show(facts: dict[str, Any], as_json: bool, *, note: str = "") -> None:
    if as_json:
        printing.echo_json(facts)
        return
    click.echo(printing.table([[name, _shown(value)] for name, value in facts.items()]))
    if note:
        click.echo(note, err=True)


def _show_all(rows: list[dict[str, Any]], as_json: bool, *, none: str) -> None:
    if as_json:
        printing.echo_json(rows)
    elif rows:
        head = [name.replace("_", " ") for name in rows[0]]
        click.echo(printing.table([head, *([_shown(value) for value in row.values()] for row in rows)]))
    else:
        click.echo(none)


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
