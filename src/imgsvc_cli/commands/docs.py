"""``imgsvc docs``: the documentation in the browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

import imgsvc_cli
from imgsvc_core.errors import MissingDependency

_PACKAGE = Path(imgsvc_cli.__file__).parent


def pages() -> Iterator[Path]:
    """Yield the first page where it may be: in the wheel, or built or as text in the clone of pip."""
    yield _PACKAGE / "site" / "index.html"
    origin = distribution("imgsvc").read_text("direct_url.json")  # PEP 610
    if origin is not None:
        docs = Path(unquote(urlsplit(json.loads(origin)["url"]).path), "docs")
        yield docs / "_build" / "html" / "index.html"
        yield docs / "index.md"


@click.command()
@click.option("--path", "only_path", is_flag=True, help="Print where the documentation is, and open nothing.")
def docs(only_path: bool) -> None:
    """Open the documentation in the browser. It needs no network."""
    page = next((page for page in pages() if page.is_file()), None)
    if page is None:
        raise MissingDependency(
            "The documentation is not installed here: build it in a clone with 'nox -s docs', "
            "or install a wheel made by 'nox -s wheel'."
        )
    click.echo(page)
    if page.suffix == ".md":
        click.echo("These are the pages as text: 'nox -s docs' makes a site of them.", err=True)
    if not only_path:
        click.launch(str(page))
