"""Failures of databases: transient ones, and those that the values of a statement cause."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from sqlite3 import SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE

from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    DisconnectionError,
    IntegrityError,
    OperationalError,
    StatementError,
)
from sqlalchemy.exc import TimeoutError as DatabaseTimeout

from imgsvc_core.errors import TargetError

# Classes of SQLSTATE.
_OF_VALUES = ("22", "23", "54")  # data exceptions, constraints, limits
_OF_READING = "25006"  # of transactions that may only read, as on a standby server
_OF_SERVERS = ("08", "53", "57P")  # connections, resources, servers that start or end


def refuses_values(error: Exception) -> bool:
    """Return True if a database refuses the values of a statement, as it will every time."""
    if state := _sqlstate(error):
        return state.startswith(_OF_VALUES)
    return isinstance(_cause(error), ValueError) or isinstance(error, DataError | IntegrityError)


def is_missing_file(path: Path) -> bool:
    """Return True if there is no such file. One that may not be looked at is told where it is opened."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def is_disk_full(error: Exception) -> bool:
    """Return True if a file or SQLite has no room for what was to be written."""
    cause = _cause(error)
    if isinstance(cause, OSError):
        return cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return getattr(cause, "sqlite_errorcode", None) in (SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_SHMSIZE)


@contextlib.contextmanager
def full_disk_named() -> Iterator[None]:
    """Raise `TargetError` with a sentence for people if the block fails because the disk is full."""
    try:
        yield
    except Exception as error:
        if is_disk_full(error):
            raise TargetError("The disk of the state folder or database is full: make room on it.") from error
        raise


def cannot_write(error: Exception) -> bool:
    """Return True if a database cannot write now, although it may be able to read."""
    return is_disk_full(error) or is_unavailable(error) or _sqlstate(error).startswith(_OF_READING)


def is_unavailable(error: Exception) -> bool:
    """Return True if a database could not be reached, or had no room for one more connection or writer."""
    if state := _sqlstate(error):
        return state.startswith(_OF_SERVERS)
    if (code := getattr(_cause(error), "sqlite_errorcode", None)) is not None:
        return bool(code == SQLITE_BUSY)
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return isinstance(error, OperationalError | DisconnectionError | DatabaseTimeout)


def _sqlstate(error: Exception) -> str:
    return str(getattr(_cause(error), "sqlstate", None) or "")


def _cause(error: Exception) -> BaseException | None:
    """Return the driver's own error."""
    return error.orig if isinstance(error, StatementError) else error
