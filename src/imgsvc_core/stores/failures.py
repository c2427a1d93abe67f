"""What lies behind the errors that clients of providers raise."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TypeVar

from imgsvc_core.errors import TargetError
from imgsvc_core.stores.declarations import StoreSpec
from imgsvc_core.stores.sessions import redacted, refused, unavailable

_E = TypeVar("_E", bound=BaseException)

_TEMPORARY = frozenset({408, 425, 429})


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it came from, as far as that can be followed."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def first_cause(error: BaseException, kind: type[_E]) -> _E | None:
    """The first of the causes of a kind."""
    return next((cause for cause in causes(error) if isinstance(cause, kind)), None)


def clean(spec: StoreSpec, error: BaseException) -> BaseException | None:
    """The error, to be the cause of another one, unless it shows a secret."""
    shown = "\n".join(f"{cause} {cause!r}" for cause in causes(error))
    return error if redacted(spec, shown) == shown else None


def connection_failed(spec: StoreSpec, error: BaseException) -> TargetError:
    """No answer came: refused for good where no such host exists, as with an unknown region."""
    lookup = first_cause(error, socket.gaierror)
    if lookup is not None and lookup.errno != socket.EAI_AGAIN:
        return refused(spec, "UnknownHost", "no server has the name that belongs to its region or account")
    return unavailable(spec, next(iter(causes(error))))


def answered(spec: StoreSpec, status: int, code: str, message: str) -> TargetError:
    """The error of an answer with a status that says no: for the moment, or for good."""
    if status in _TEMPORARY or (status >= 500 and status != 501):
        return unavailable(spec, f"{code}: {message}")
    return refused(spec, code, message)
