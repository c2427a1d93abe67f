"""``imgsvc formats``: the formats that can be read and written here."""

from __future__ import annotations

from typing import Any

import click

import imgsvc_core as imgsvc
from imgsvc_cli import printing
from imgsvc_cli.options import as_json_option


@click.command()
@as_json_option
def formats(as_json: bool) -> None:
    """List the formats that can be read and written."""
    from imgsvc_core.formats.availability import read_support, write_support

    rows: list[dict[str, Any]] = []
    for row in imgsvc.FORMATS.values():
        reading, writing = read_support(row.name), write_support(row.name)
        rows.append(
            {
                "name": row.name,
                "title": row.title,
                "suffixes": list(row.suffixes),
                "reads": reading.backend is not None,
                "writes": writing.backend is not None,
                "alpha": row.alpha,
                "animation": row.animation,
                "depth": row.depth,
                "extra": reading.extra or writing.extra,
            }
        )
    if as_json:
        printing.echo_json(rows)
        return
    head = ["format", "", "reads", "writes", "alpha", "animation", "bits", "needs"]
    lines = [
        [
            row["name"],
            row["title"],
            *(printing.words(row[fact]) for fact in ("reads", "writes", "alpha", "animation", "depth")),
            f"imgsvc[{row['extra']}]" if row["extra"] else "",
        ]
        for row in rows
    ]
    click.echo(printing.table([head, *lines]))
