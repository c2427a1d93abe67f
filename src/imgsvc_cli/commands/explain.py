"""``imgsvc explain``: the plan of a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import imgsvc_core as imgsvc
from imgsvc_cli import printing
from imgsvc_cli.completion import FileOrUrl, offering
from imgsvc_cli.flags import SectionedCommand, request_flags
from imgsvc_cli.options import as_json_option, limits_option, spec_option
from imgsvc_cli.requests import preset_option, read_request
from imgsvc_cli.service_settings import config_option
from imgsvc_cli.standard_streams import opened
from imgsvc_core.spec.options import digits


@request_flags
@click.command(cls=SectionedCommand)
@click.argument("source", required=False, type=FileOrUrl())
@click.option("--size", metavar="WxH", help="Size of an imagined picture, instead of a SOURCE.")
@click.option(
    "--source-format",
    metavar="NAME",
    default="jpg",
    help="Format of the imagined picture. [default jpg]",
    shell_complete=offering(imgsvc.FORMATS),
)
@click.option("--target", metavar="NAME", default="", help="Name of the result; its suffix names the format.")
@spec_option
@preset_option
@config_option
@limits_option
@as_json_option
def explain(
    source: str | None,
    size: str | None,
    source_format: str,
    target: str,
    spec: str | None,
    presets: tuple[str, ...],
    config: Path | None,
    limits: imgsvc.Limits,
    as_json: bool,
    **flags: Any,
) -> None:
    """Show the plan of a request for a picture.

    The plan tells what would be done, in which order, and which steps are merged.
    """
    request = read_request(flags, spec, presets, config)
    if (source is None) == (size is None):
        raise click.UsageError("Give either a SOURCE or --size.")
    info = (
        imgsvc.inspect(opened(source), limits=limits)
        if source is not None
        else _imagined(size or "", source_format)
    )
    plan = imgsvc.explain(request, info, limits=limits, suffix=Path(target).suffix)
    if as_json:
        printing.echo_json(plan.to_dict())
    else:
        click.echo(str(plan))


def _imagined(size: str, format: str) -> imgsvc.ImageInfo:
    width, height = map(digits, size.partition("x")[::2])
    if not (width and height):
        raise click.UsageError(f"--size must be a size such as 4000x3000, got '{size}'.")
    if format not in imgsvc.FORMATS:
        raise click.UsageError(f"--source-format must be one of {', '.join(imgsvc.FORMATS)}, got '{format}'.")
    return imgsvc.ImageInfo(format=format, width=width, height=height, colorspace="srgb", bytes=0)
