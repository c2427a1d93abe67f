"""``imgsvc inspect``: facts from the headers of pictures."""

from __future__ import annotations

import click

import imgsvc_core as imgsvc
from imgsvc_cli import exit_codes, printing
from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.options import as_json_option, header_limits_option
from imgsvc_cli.standard_streams import opened
from imgsvc_core.errors import ImgsvcError
from imgsvc_core.sources import shown_url
from imgsvc_core.spec import FACTS


@click.command()
@click.argument("sources", nargs=-1, required=True, type=FileOrUrl(), metavar="SOURCE...")
@click.option("--digest", is_flag=True, help="Compute the SHA-256 of the file too.")
@click.option("--facts", is_flag=True, help="Measure the pixels too: placeholders, palette, sharpness.")
@header_limits_option
@as_json_option
def inspect(sources: tuple[str, ...], digest: bool, facts: bool, limits: imgsvc.Limits, as_json: bool) -> int:
    """Show facts from the headers of pictures."""
    code = 0
    for source in sources:
        try:
            name = "-" if source == "-" else None
            asked = tuple(FACTS) if facts else ()
            info = imgsvc.inspect(opened(source), limits=limits, digest=digest, name=name, facts=asked)
        except ImgsvcError as error:
            code = code or exit_codes.exit_code(error)
            subject = shown_url(source) if as_json or len(sources) > 1 else ""
            printing.echo_error(error, subject=subject, as_json=as_json)
            continue
        told = info.to_dict()
        if as_json:
            printing.echo_json(told)
        else:
            measured = told.pop("facts")
            del told["upright"]  # of a source it is false, also if it needs no turn
            rows = [
                [name, printing.words(value)]
                for name, value in (told | measured).items()
                if value not in (None, [], "")
            ]
            click.echo(printing.table(rows) + ("\n" if len(sources) > 1 else ""))
    return code
