"""``imgsvc compare``: how alike two pictures look."""

from __future__ import annotations

import click

import imgsvc_core as imgsvc
from imgsvc_cli import printing, standard_streams
from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.options import as_json_option, limits_option


@click.command()
@click.argument("original", type=FileOrUrl())
@click.argument("other", type=FileOrUrl())
@limits_option
@as_json_option
def compare(original: str, other: str, limits: imgsvc.Limits, as_json: bool) -> int:
    """Show how similar OTHER looks to ORIGINAL, a picture of the same size: files or URLs.

    SSIMULACRA2 is 100 for equal pictures; at 90 the difference cannot be seen, at 70 it is hard to see.
    """
    found = imgsvc.compare(standard_streams.opened(original), standard_streams.opened(other), limits=limits)
    if as_json:
        printing.echo_json(found.to_dict())
    else:
        click.echo(f"SSIMULACRA2 {found.ssimulacra2:.2f}, SSIM {found.ssim:.4f}, DSSIM {found.dssim:.4f}")
    return 0
