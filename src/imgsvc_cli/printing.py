"""Results and errors in words and as JSON."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import click

from imgsvc_core.errors import ImgsvcError, SpecError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What ends a line, drives a terminal, or turns the direction of text: names of files may hold it."""


def line(text: str) -> str:
    r"""Return a text as one line, with control characters as escapes.

    >>> print(line("a\nb.jpg"))
    a\nb.jpg
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def echo_line(text: str, *, err: bool = False) -> None:
    """Print one line that may hold names of files."""
    click.echo(line(text), err=err)


def echo_json(value: Any) -> None:
    """Print a JSON document, indented if standard output is a terminal."""
    import json  # loaded where it is asked for, as all of its modules take some time

    indented = sys.stdout is not None and sys.stdout.isatty()
    for text in json.dumps(value, ensure_ascii=False, indent=2 if indented else None).split("\n"):
        click.echo(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def echo_error(error: ImgsvcError, *, subject: str = "", as_json: bool = False) -> None:
    """Print an error: as JSON, or on standard error with a line for each problem.

    ``subject`` is the source that it is about.
    """
    if as_json:
        echo_json({**({"source": subject} if subject else {}), **_error_dict(error)})
        return
    where = f"{subject}: " if subject else ""
    for text in error_lines(error):
        click.echo(f"{_who()} {line(where + text)}", err=True)


def echo_usage(error: click.ClickException) -> None:
    """Print what is wrong with the arguments of a command, and where its help is."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    message = error.format_message().replace(":\n\t", " ").replace(",\n\t", ", ")  # a choice, one a line
    click.echo(f"{_who()} {line(message)}", err=True)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)


def _who() -> str:
    return "imgsvc:" if os.environ.get("NO_COLOR") else click.style("imgsvc:", fg="red")


def error_lines(error: ImgsvcError) -> list[str]:
    """Return the sentences of an error, one for each problem, with the path of an item of a list."""
    if isinstance(error, SpecError):
        return [_with_item(problem.path, problem.message) for problem in error.problems]
    return [_with_item(error.path, error.message)]


def _with_item(path: str, message: str) -> str:
    return f"{path}: {message}" if "[" in path else message


def _error_dict(error: ImgsvcError) -> dict[str, Any]:
    found: dict[str, Any] = {"success": False, "error": error.slug, "message": error.message}
    if isinstance(error, SpecError):
        found["errors"] = [{"path": item.path, "message": item.message} for item in error.problems]
    elif error.path:
        found["errors"] = [{"path": error.path, "message": error.message}]
    return found


def on_terminal() -> bool:
    """Return True if standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def size(count: int) -> str:
    """Return a number of bytes with a unit."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def words(value: object) -> str:
    """Return a JSON value as a table shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "":
        return "-"
    if isinstance(value, dict):
        return " ".join(map(words, value.values()))
    return ", ".join(map(words, value)) if isinstance(value, list) else str(value)


def table(rows: list[list[str]]) -> str:
    """Return rows as aligned columns."""
    rows = [[line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
