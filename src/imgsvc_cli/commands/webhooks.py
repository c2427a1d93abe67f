"""``imgsvc webhooks``: asynchronous requests and their notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from imgsvc_cli.administration import administrative, echo_object, in_database, now, unknown
from imgsvc_cli.options import as_json_option
from imgsvc_cli.service_settings import with_settings

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database

_STATUSES = ("created", "scheduled", "dispatched", "delivered", "failed")


@click.group()
def webhooks() -> None:
    """Look at notifications, and send failed ones again."""


@webhooks.command("list")
@click.option("--account", "account_id", metavar="ACCOUNT", help="List those of one account only.")
@click.option(
    "--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="Their status; can repeat."
)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Most webhooks.")
@administrative(empty="There are no webhooks.")
async def list_webhooks(
    db: Database, _: Settings, account_id: str | None, statuses: tuple[str, ...], limit: int
) -> list[dict[str, Any]]:
    """List webhooks with the outcome of their last attempt, newest first."""
    from imgsvc_http.webhooks import records

    found = await records.list_some(db, account_id, statuses=statuses, limit=limit)
    return [_row(record) for record in found]


@webhooks.command()
@click.argument("id_", metavar="ID")
@with_settings
@as_json_option
def show(id_: str, settings: Settings, as_json: bool) -> None:
    """Show a webhook with each attempt, its outcome and the reason."""

    async def work(db: Database) -> dict[str, Any]:
        from imgsvc_http.answering.answers import unstructured
        from imgsvc_http.webhooks import records

        record = await records.get(db, None, id_)
        if record is None:
            raise unknown("webhook", id_)
        return unstructured(record)

    found = in_database(settings, work)
    if not as_json:
        found["attempts"] = "; ".join(f"{item['at']} {item['reason']}" for item in found["attempts"])
    echo_object(found, as_json)


@webhooks.command()
@click.argument("id_", metavar="ID")
@administrative()
async def retry(db: Database, settings: Settings, id_: str) -> dict[str, Any]:
    """Notify the endpoint of a failed or scheduled webhook now. A running service does it."""
    from imgsvc_http.state.vault import present_vault
    from imgsvc_http.webhooks import records
    from imgsvc_http.webhooks.engine import Queues
    from imgsvc_http.webhooks.jobs import DELIVER

    queues = Queues(settings.database_url)
    try:
        vault = present_vault(settings)

        def put(account_id: str, attempt: int) -> records.Enqueue:
            return queues.enqueue(DELIVER, id_, account_id, attempt=attempt)

        if not await records.retry(db, vault, id_, now(), put):
            raise unknown("failed or scheduled webhook", id_)
    finally:
        queues.close()
    return {"id": id_, "status": "scheduled"}


def _row(record: Any) -> dict[str, Any]:
    from imgsvc_http.answering.answers import timestamp

    last = record.attempts[-1].reason if record.attempts else None
    return {
        "id": record.id,
        "status": record.status,
        "code": record.code,
        "created_at": timestamp(record.created_at),
        "attempts": len(record.attempts),
        "last": last,
    }
