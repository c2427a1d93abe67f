"""What keeps work from being done, and passes by itself."""

from __future__ import annotations

import errno
import socket
import ssl

from sqlalchemy.exc import SQLAlchemyError

from imgsvc_http.state.database import refuses_values
from imgsvc_http.state.vault import NoKeyFits

_OF_THE_NETWORK = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)
_PASSING = (
    None,  # several addresses that could not be connected to
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


def passes(error: Exception) -> bool:
    """Whether the same work may succeed later: it lacked the database, the network or a master key.

    Files and buckets that fail are none of these: that is a result of the work.
    """
    by = type(error).__module__.partition(".")[0]
    if isinstance(error, SQLAlchemyError) or by in ("asyncpg", "psycopg"):
        return not refuses_values(error)
    if type(error) is OSError:
        return error.errno in _PASSING
    return isinstance(error, (*_OF_THE_NETWORK, NoKeyFits)) or by == "dbos"
