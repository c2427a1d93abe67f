"""Results and errors in words."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from imgsvc_core.errors import ImgsvcError, SpecError


def error_lines(error: ImgsvcError) -> list[str]:
    """The sentences of an error, one for each problem."""
    return (
        [problem.message for problem in error.problems] if isinstance(error, SpecError) else [error.message]
    )


def error_dict(error: ImgsvcError) -> dict[str, Any]:
    """An error as JSON values."""
    found: dict[str, Any] = {"success": False, "error": error.slug, "message": error.message}
    if isinstance(error, SpecError):
        found["errors"] = [{"path": item.path, "message": item.message} for item in error.problems]
    return found


def echo_json(value: Any) -> None:
    """Print a JSON document, readable on a terminal."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2 if _read_by_people() else None))


def _read_by_people() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def echo_error(error: ImgsvcError, *, subject: str = "") -> None:
    """Print an error on standard error, one line for each problem."""
    who = "imgsvc:" if os.environ.get("NO_COLOR") else click.style("imgsvc:", fg="red")
    for line in error_lines(error):
        where = f"{subject}: " if subject else ""
        click.echo(f"{who} {where}{line}", err=True)


def on_terminal() -> bool:
    """Whether somebody looks at standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


def size(count: int) -> str:
    """A number of bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def table(rows: list[list[str]]) -> str:
    """Aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
