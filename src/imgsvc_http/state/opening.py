"""The state of a service before its processes start."""

from __future__ import annotations

from imgsvc_http.settings import Settings
from imgsvc_http.state import lease
from imgsvc_http.state.encrypted import check_some
from imgsvc_http.state.engine import open_engine
from imgsvc_http.state.folder import make_contents_private
from imgsvc_http.state.migrating import migrate_blocking
from imgsvc_http.state.vault import present_vault


def prepare_state(settings: Settings) -> None:
    """Bring the tables up to date, and end the leases of an earlier run. The state folder is locked.

    Raises:
        SpecError: the database cannot be used, or its encrypted values have another master key.
    """
    make_contents_private(settings.server.state_folder)
    migrate_blocking(settings.database_url)
    engine = open_engine(settings.database_url)
    try:
        with engine.begin() as connection:
            check_some(connection, present_vault(settings))
            if engine.dialect.name == "sqlite":  # no other service can use it
                lease.end_all_in(connection)
    finally:
        engine.dispose()
