"""``imgsvc serve``: the service in this process."""

from __future__ import annotations

import faulthandler
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from imgsvc_cli import printing
from imgsvc_cli.completion import FileOrUrl
from imgsvc_cli.service_settings import config_option, load_settings, service_packages, set_option
from imgsvc_core.errors import invalid

if TYPE_CHECKING:
    from imgsvc_http.serve import Greeting
    from imgsvc_http.settings import Settings


@click.command()
@config_option
@set_option
@click.option("--host", help="Name or address to listen at. [default 127.0.0.1]")
@click.option("--port", metavar="INTEGER", help="Port to listen at; 0 takes a free one. [default 8443]")
@click.option("--state", type=FileOrUrl(), metavar="FOLDER", help="Folder for everything that is stored.")
@click.option("--database", metavar="URL", help="postgresql:// URL, for several nodes.")
@click.option("--cache", metavar="URL", help="redis:// URL, to count request rates over several nodes.")
@click.option("--temporary", metavar="URL", help="fsspec URL of temporary storage, for several nodes.")
@click.option("--print-config", is_flag=True, help="Print all settings as TOML and exit.")
@click.option(
    "--print-sizing", is_flag=True, help="Print how many processes there would be, and why, and exit."
)
@click.option("--json", "as_json", is_flag=True, help="Print the sizing as JSON.")
@click.option("--verbose", is_flag=True, help="Log what the service does.")
def serve(
    config: Path | None,
    assignments: tuple[str, ...],
    host: str | None,
    port: str | None,
    state: str | None,
    database: str | None,
    cache: str | None,
    temporary: str | None,
    print_config: bool,
    print_sizing: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Serve the HTTPS interface until interrupted. The first run sets everything up."""
    flags = {
        "server.host": host,
        "server.port": port,
        "server.state_folder": state,
        "database.url": database,
        "cache.url": cache,
        "temporary.url": temporary,
    }
    if as_json and not print_sizing:
        raise invalid("--json", "Option '--json' must be given together with '--print-sizing', got it alone")
    settings = load_settings(config, assignments, flags)
    if print_config:
        from imgsvc_http.settings import render

        click.echo(render(settings), nl=False)
        return
    if print_sizing:
        _echo_sizing(settings, as_json=as_json)
        return
    # A crash of native code tells in the log where it was. Other threads run on and would cut it short.
    faulthandler.enable(all_threads=False)
    with service_packages():
        from imgsvc_http.settings import sizing_of
        from imgsvc_http.workers.forking import begin_forkserver

        # It loads the library while the service is loaded here.
        settings.fonts.export()
        forkserver = begin_forkserver(sizing_of(settings).worker_memory_bytes, settings.server.scratch)
        from imgsvc_http.serve import serve as run
        from imgsvc_http.server.log import begin_log
        from imgsvc_http.state.failures import full_disk_named
    begin_log(verbose=verbose)
    with closing(forkserver), full_disk_named():
        run(settings, partial(_greet, has_pages=settings.playground.enabled), forkserver)


def _greet(greeting: Greeting, *, has_pages: bool) -> None:
    click.echo(f"Serving at {greeting.address} until you press Ctrl-C.")
    if has_pages:
        click.echo(f"Playground: {greeting.address}/playground, dashboard: {greeting.address}/dashboard")
    click.echo("Documentation: imgsvc docs")
    if greeting.key:
        click.echo(f"Your API key, shown only now: {greeting.key}")
    else:
        click.echo("Your API key was shown when it was made. For another one: imgsvc keys create")
    click.echo(f"Try it from another terminal:\n\n  {greeting.command}\n")


def _echo_sizing(settings: Settings, *, as_json: bool) -> None:
    from imgsvc_http.settings.sizing import described

    sizing = described(settings)
    if as_json:
        printing.echo_json(sizing)
        return
    for part, values in sizing.items():
        click.echo(f"{part}:")
        for name, value in values.items():
            shown = printing.size(value) if name.endswith("bytes") and value else printing.words(value)
            click.echo(f"  {name.removesuffix('_bytes').replace('_', ' ')}: {shown}")
