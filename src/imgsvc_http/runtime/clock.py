"""The clock of the service."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


def month_of(moment: datetime) -> str:
    """Return the month of a moment by UTC, such as ``2026-11``."""
    return f"{moment.astimezone(UTC):%Y-%m}"
