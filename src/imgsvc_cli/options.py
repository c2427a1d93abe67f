"""Options that several subcommands have."""

from __future__ import annotations

import json
from typing import Any

import attrs
import click

from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.json_files import read_json
from imgsvc_core.limits import Limits

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

spec_option = click.option(
    "--spec",
    type=FileOrUrl(),
    metavar="FILE",
    help="Request as a JSON file, or - for standard input; flags override it.",
)


def _as_limits(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Limits:
    values: dict[str, Any] = {}
    for item in given:
        name, _, value = item.partition("=")
        if name not in attrs.fields_dict(Limits):
            raise click.UsageError(
                f"--limit must name one of {', '.join(attrs.fields_dict(Limits))}, got '{name}'."
            )
        try:
            values[name] = None if value == "none" else json.loads(value)
        except ValueError:
            raise click.UsageError(f"--limit {name} must be a number or none, got '{value}'.") from None
    return Limits(**values)


limits_option = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    callback=_as_limits,
    help="Change a limit on the work for one picture, such as memory_bytes=3000000000, or none to lift it; "
    "may be repeated.",
)


def read_spec(name: str | None) -> dict[str, Any] | None:
    """Return the JSON object that ``--spec`` names, if any."""
    return None if name is None else read_json("--spec", name)
