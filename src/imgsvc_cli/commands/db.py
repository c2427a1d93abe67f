"""``imgsvc db``: the tables of the service's database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from imgsvc_cli.administration import echo_object
from imgsvc_cli.options import as_json_option
from imgsvc_cli.service_settings import service_packages, with_settings

if TYPE_CHECKING:
    from imgsvc_http.settings import Settings


@click.group()
def db() -> None:
    """Look at the tables of the database, and bring them up to date."""


@db.command()
@with_settings
@as_json_option
def status(settings: Settings, as_json: bool) -> None:
    """Show if the tables are those of this version. Nothing is changed."""
    _echo_versions(settings, as_json)


@db.command()
@with_settings
@as_json_option
def upgrade(settings: Settings, as_json: bool) -> None:
    """Make the tables, or bring them up to date, as imgsvc serve does when it starts."""
    import asyncio

    with service_packages():
        from imgsvc_http.state.failures import full_disk_named
        from imgsvc_http.state.migrating import migrate

    with full_disk_named():
        asyncio.run(migrate(settings.database_url))
    _echo_versions(settings, as_json)


def _echo_versions(settings: Settings, as_json: bool) -> None:
    import asyncio

    import attrs

    with service_packages():
        from imgsvc_http.state.failures import full_disk_named
        from imgsvc_http.state.migrating import versions

    with full_disk_named():
        found = asyncio.run(versions(settings.database_url))
    echo_object(attrs.asdict(found), as_json)
