"""``imgsvc docs``: the documentation in the browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

import imgsvc_cli
from imgsvc_cli.opening import open_in_browser
from imgsvc_core.errors import SourceUnreachable

_PACKAGE = Path(imgsvc_cli.__file__).parent


def pages() -> Iterator[Path]:
    """Yield the places where the first page may be, the best first: a site, then the pages as text."""
    yield _PACKAGE / "site" / "index.html"
    if (clone := _clone()) is not None:
        yield clone / "docs" / "_build" / "html" / "index.html"
        yield clone / "docs" / "index.md"
    yield _PACKAGE / "pages" / "index.md"


def _clone() -> Path | None:
    """Return the folder that pip installed imgsvc from."""
    try:
        origin = distribution("imgsvc").read_text("direct_url.json")  # PEP 610
    except PackageNotFoundError:
        return _PACKAGE.parents[1]
    return None if origin is None else Path(unquote(urlsplit(json.loads(origin)["url"]).path))


@click.command()
@click.option("--path", "only_path", is_flag=True, help="Print where the documentation is, and open nothing.")
def docs(only_path: bool) -> None:
    """Open the documentation in the browser. It needs no network."""
    page = next((page for page in pages() if page.is_file()), None)
    if page is None:
        raise SourceUnreachable(
            f"This installation has no documentation in '{_PACKAGE}': install imgsvc again, "
            "or read docs/index.md in a clone."
        )
    click.echo(page)
    if page.suffix == ".md":
        click.echo(
            "These are the pages as text. In a clone, 'nox -s docs' makes a site of them, "
            "and 'nox -s wheel' a wheel that holds the site.",
            err=True,
        )
    if not only_path:
        open_in_browser(page.as_uri())
