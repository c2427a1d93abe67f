"""Options that several subcommands have."""

from __future__ import annotations

from typing import Any

import click

from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.json_files import read_json

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

spec_option = click.option(
    "--spec",
    type=FileOrUrl(),
    metavar="FILE",
    help="Request as a JSON file, or - for standard input; flags override it.",
)


def read_spec(name: str | None) -> dict[str, Any] | None:
    """Return the JSON object that ``--spec`` names, if any."""
    return None if name is None else read_json("--spec", name)
