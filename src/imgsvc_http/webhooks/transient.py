"""Failures of jobs that pass by themselves."""

from __future__ import annotations

import errno
import socket
import ssl

from sqlalchemy.exc import SQLAlchemyError

from imgsvc_core.errors import MachineFailed
from imgsvc_http.state.failures import is_disk_full, refuses_values
from imgsvc_http.state.vault import MissingMasterKey

_OF_NETWORKS = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)
_ERRNO = (
    None,  # several addresses, none of which could be connected to
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.EADDRNOTAVAIL,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
)


def is_transient(error: Exception) -> bool:
    """Return True if a job may succeed later: it lacked the database, the network, disk or a master key.

    Failures of files and buckets are results of a request.
    """
    if is_disk_full(error) or isinstance(error, MachineFailed):
        return True
    package = type(error).__module__.partition(".")[0]
    if isinstance(error, SQLAlchemyError) or package == "psycopg":
        return not refuses_values(error)
    if type(error) is OSError:
        return error.errno in _ERRNO
    return isinstance(error, (*_OF_NETWORKS, MissingMasterKey)) or package == "dbos"
