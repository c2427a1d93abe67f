"""``imgsvc schema``: what a request may contain."""

from __future__ import annotations

import json

import click

import imgsvc_core as imgsvc


@click.command()
def schema() -> None:
    """Print the JSON Schema of requests."""
    click.echo(json.dumps(imgsvc.request_schema(), indent=2))
