"""What passes by itself, so that accepted work waits for it."""

from __future__ import annotations

import errno
import socket

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.state.vault import NoKeyFits
from imgsvc_http.webhooks.transient import passes


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        TimeoutError(),
        socket.gaierror(socket.EAI_AGAIN, "no answer"),
        OSError(errno.EHOSTUNREACH, "no route"),
        OSError("Multiple exceptions: [Errno 111], [Errno 101]"),
        OperationalError("SELECT 1", {}, Exception("database is locked")),
        NoConnectionLeft(),
        NoKeyFits("another key"),
    ],
    ids=repr,
)
def test_what_passes(error: Exception) -> None:
    assert passes(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "missing"),
        PermissionError("denied"),
        OSError(errno.EIO, "what a bucket refuses"),
        ImgsvcError("damaged"),
        KeyError("a mistake"),
    ],
    ids=repr,
)
def test_what_stays(error: Exception) -> None:
    assert not passes(error)
