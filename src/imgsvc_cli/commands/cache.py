"""``imgsvc cache``: the cache of pictures that URLs ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import administrative, check_account, now
from imgsvc_cli.service_settings import service_packages

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database


@click.group()
def cache() -> None:
    """Look at the cache of pictures, and purge it."""


@cache.command()
@administrative()
async def stats(_: Database, settings: Settings) -> dict[str, Any]:
    """Show how much the cache keeps in its folder or bucket. Metrics have the hits of each node."""
    with service_packages():
        from imgsvc_http.cache.opening import open_place_tier

    tier = open_place_tier(settings)
    entries, size = (0, 0) if tier is None else await tier.totals()
    return {"entries": entries, "bytes": size, "place_bytes": settings.cache.place_bytes}


@cache.command()
@click.argument("source", required=False)
@click.option("--account", "account_id", metavar="ACCOUNT", help="Purge pictures of one account only.")
@click.option("--all", "everything", is_flag=True, help="Purge all pictures.")
@administrative(changes=True)
async def purge(
    db: Database, settings: Settings, source: str | None, account_id: str | None, everything: bool
) -> dict[str, Any]:
    """Purge the pictures of a SOURCE, which is a URL or {origin}/{path}, or all.

    The service stops answering them at once, and other nodes within a second.
    """
    if everything != (source is None) or (everything and account_id is not None):
        raise click.UsageError("Give a SOURCE, with --account or without, or give --all alone.")
    with service_packages():
        from imgsvc_http.cache import purges
        from imgsvc_http.cache.entries import source_digest
        from imgsvc_http.cache.opening import open_place_tier
        from imgsvc_http.state import accounts

    await check_account(db, account_id)
    of = [account.id for account in await accounts.list_all(db)] if account_id is None else [account_id]
    digests = [purges.EVERYTHING] if source is None else [source_digest(id_, source) for id_ in of]
    tier, deleted = open_place_tier(settings), 0
    for digest in digests:
        await purges.record(db, digest, now())
        deleted += 0 if tier is None else await tier.purge(digest)
    return {"purged": deleted}
