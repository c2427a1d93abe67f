"""``imgsvc docs``: the documentation in the browser."""

from __future__ import annotations

from pathlib import Path

import click

import imgsvc_cli
from imgsvc_core.errors import MissingDependency

_PACKAGE = Path(imgsvc_cli.__file__).parent
FOLDERS = (_PACKAGE / "site", _PACKAGE.parents[1] / "docs" / "_build" / "html")
"""Where the built documentation may be: in the wheel, or in a clone."""


@click.command()
@click.option("--path", "only_path", is_flag=True, help="Print where the documentation is, and open nothing.")
def docs(only_path: bool) -> None:
    """Open the documentation in the browser. It needs no network."""
    page = next((page for folder in FOLDERS if (page := folder / "index.html").is_file()), None)
    if page is None:
        raise MissingDependency(
            "The documentation is not installed here: build it in a clone with 'nox -s docs', "
            "or install a wheel made by 'nox -s wheel'."
        )
    click.echo(page)
    if not only_path:
        click.launch(str(page))
