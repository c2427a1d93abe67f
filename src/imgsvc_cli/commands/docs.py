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
_BUILT = Path("docs", "_build", "html")


def folders() -> Iterator[Path]:
    """Yield where the built documentation may be: in the wheel, or in the clone that pip installed."""
    yield _PACKAGE / "site"
    origin = distribution("imgsvc").read_text("direct_url.json")  # PEP 610
    if origin is not None:
        yield Path(unquote(urlsplit(json.loads(origin)["url"]).path)) / _BUILT


@click.command()
@click.option("--path", "only_path", is_flag=True, help="Print where the documentation is, and open nothing.")
def docs(only_path: bool) -> None:
    """Open the documentation in the browser. It needs no network."""
    page = next((page for folder in folders() if (page := folder / "index.html").is_file()), None)
    if page is None:
        raise MissingDependency(
            "The documentation is not installed here: build it in a clone with 'nox -s docs', "
            "or install a wheel made by 'nox -s wheel'."
        )
    click.echo(page)
    if not only_path:
        click.launch(str(page))
