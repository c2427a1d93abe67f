"""Options that several subcommands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs
import click

from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.json_files import read_json
from imgsvc_core.limits import Limits

_Command = TypeVar("_Command", bound=Callable[..., Any])

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

spec_option = click.option(
    "--spec",
    type=FileOrUrl(),
    metavar="FILE",
    help="Request as a JSON file, or - for standard input; flags override it.",
)


def _limits_option(usual: Limits, names: Sequence[str], example: str) -> Callable[[_Command], _Command]:
    """Return the option ``--limit`` of a command that heeds the limits of these names."""

    def changed(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> Limits:
        values: dict[str, Any] = {}
        for item in given:
            import json

            name, _, value = item.partition("=")
            if name not in names:
                raise click.UsageError(f"--limit must name one of {', '.join(names)}, got '{name}'.")
            try:
                values[name] = None if value == "none" else json.loads(value)
            except ValueError:
                raise click.UsageError(f"--limit {name} must be a number or none, got '{value}'.") from None
        return attrs.evolve(usual, **values)

    return click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="NAME=NUMBER",
        callback=changed,
        help=f"Change a limit on the work for one picture, such as {example}, or none to lift it; "
        "may be repeated.",
    )


limits_option = _limits_option(Limits(), tuple(attrs.fields_dict(Limits)), "memory_bytes=3000000000")
header_limits_option = _limits_option(
    attrs.evolve(Limits(), source_bytes=None),
    ("source_bytes", "source_pixels", "memory_bytes", "seconds"),
    "seconds=5",
)
"""For reading headers, however long the file is."""


def read_spec(name: str | None) -> dict[str, Any] | None:
    """Return the JSON object that ``--spec`` names, if any."""
    return None if name is None else read_json("--spec", name)
