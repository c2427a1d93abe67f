"""What passes by itself, so that accepted work waits for it."""

from __future__ import annotations

import errno
import socket

import psycopg.errors
import pytest
from dbos import error as dbos_errors
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft

from imgsvc_core.errors import ImgsvcError
from imgsvc_http.state.vault import MissingMasterKey
from imgsvc_http.webhooks.delivery import Delivery
from imgsvc_http.webhooks.transient import is_transient


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
        MissingMasterKey("another key"),
        psycopg.OperationalError("the connection is lost"),
        dbos_errors.DBOSException("the engine has lost its database"),
    ],
    ids=repr,
)
def test_what_is_transient(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "missing"),
        PermissionError("denied"),
        OSError(errno.EIO, "what a bucket refuses"),
        ImgsvcError("damaged"),
        KeyError("a mistake"),
        psycopg.errors.NotNullViolation("a value that no database takes"),
    ],
    ids=repr,
)
def test_what_stays(error: Exception) -> None:
    assert not is_transient(error)


@pytest.mark.parametrize(
    "code", [0, 200, 204, 299, 301, 308, 400, 404, 408, 410, 425, 429, 499, 500, 503, 599]
)
def test_answers_of_endpoints_that_may_become_others(code: int) -> None:
    outcome = Delivery(code, "")
    assert outcome.delivered == (code in (200, 204, 299))
    assert outcome.worth_retrying == (code in (0, 408, 425, 429, 500, 503, 599))
    assert not Delivery(code, "", allowed=False).worth_retrying
