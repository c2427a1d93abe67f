"""``imgsvc playground``: open the playground with a service of its own."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import attrs
import click

from imgsvc_cli.administration import account_or_only_one, in_database, now
from imgsvc_cli.opening import open_in_browser
from imgsvc_cli.service_settings import service_packages

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings
    from imgsvc_http.state.database import Database

_MANY_PICTURES = 10**9


@click.command()
@click.option("--port", default=0, metavar="INTEGER", help="Port to listen at. [default: any free one]")
@click.option("--no-browser", is_flag=True, help="Print the address, and open nothing.")
def playground(port: int, no_browser: bool) -> None:
    """Try requests on pictures in the browser.

    Starts a service that only this machine reaches, and that keeps nothing. It needs no network, no account
    and no settings.
    """
    with service_packages():
        from imgsvc_http.serve import Greeting, serve
        from imgsvc_http.server.log import begin_log
        from imgsvc_http.settings import Settings
    begin_log(verbose=False)

    def greet(greeting: Greeting) -> None:
        # What follows # never leaves the browser.
        address = f"{greeting.address}/playground#key={key}"
        click.echo(f"Playground: {address}")
        click.echo("Only this machine reaches it, and it keeps nothing. Press Ctrl-C to end.")
        click.echo("Documentation: imgsvc docs")
        if not no_browser:
            open_in_browser(address)

    with tempfile.TemporaryDirectory(prefix="imgsvc-playground-", ignore_cleanup_errors=True) as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"  # where fonts would leave something
        settings = Settings.load(
            flags={
                "server.port": port,
                "server.state_folder": folder,
                "server.plain_http": True,
                "server.processes": 1,
                "server.shutdown_seconds": 2,
                "monitoring.access_log": "off",
            }
        )
        key = _make_account(settings)
        serve(settings, greet)


def _make_account(settings: Settings) -> str | None:
    """Make an account that can sign URLs, and return its API key."""
    from imgsvc_http.state import first_account, signing_keys
    from imgsvc_http.state.vault import open_vault

    async def work(db: Database) -> str | None:
        default = attrs.evolve(settings.accounts, quota=_MANY_PICTURES)
        key = await first_account.create(db, default, now())
        owner = await account_or_only_one(db, None)
        await signing_keys.create(db, open_vault(settings), owner, name="playground", now=now())
        return key

    return in_database(settings, work, make=True)
