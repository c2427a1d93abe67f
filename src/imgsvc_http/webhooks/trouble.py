"""What keeps work from being done, and passes by itself."""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.state.database import refuses_values
from imgsvc_http.state.vault import NoKeyFits

_OF_FILES = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def passes(error: Exception) -> bool:
    """Whether the same work may succeed later: it lacked the database, the network or a master key."""
    by = type(error).__module__.partition(".")[0]
    if isinstance(error, SQLAlchemyError) or by in ("asyncpg", "psycopg"):
        return not refuses_values(error)
    if isinstance(error, OSError):
        return not isinstance(error, _OF_FILES)
    return by == "dbos" or isinstance(error, NoKeyFits)
