"""Translate the errors of providers' clients into errors of the library."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from imgsvc_core.errors import ImgsvcError, TargetError
from imgsvc_core.spec.store.declarations import StoreSpec
from imgsvc_stores.errors import StoreRefused
from imgsvc_stores.masking import redacted, refused, unavailable

_E = TypeVar("_E", bound=BaseException)
_T = TypeVar("_T")

_ODD = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    zlib.error,
)
"""The errors that clients raise for a malformed response of a server."""

_MOST_SHOWN = 1000  # characters of a provider's words
_TEMPORARY = frozenset({408, 425, 429})


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the chain of its causes."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def first_cause(error: BaseException, kind: type[_E]) -> _E | None:
    """Return the first cause of a type, or None."""
    return next((cause for cause in causes(error) if isinstance(cause, kind)), None)


async def translating(
    spec: StoreSpec,
    work: Awaitable[_T],
    translated: Callable[[StoreSpec, Exception], TargetError],
    tokens: Callable[[], Iterable[str]] = tuple,
) -> _T:
    """Return the result of a client's work. Raise its errors as errors of the library.

    The cause of such an error is a description, because the client's own errors hold requests with their
    credentials. ``tokens`` gives the tokens that the credentials were exchanged for, which are masked too.
    """
    try:
        return await work
    except ImgsvcError:
        raise
    except Exception as error:  # packages of stores raise anything
        failure: ImgsvcError | None = first_cause(error, ImgsvcError)
        cause = failure.__cause__ if failure else OSError(redacted(spec, _described(error), tokens()))
        if failure is None:
            failure = _without(translated(spec, error), spec, tokens())
    raise failure from cause  # outside of the except clause, so that the original error is not its context


def _described(error: BaseException) -> str:
    return "; from ".join(f"{type(cause).__name__}: {cause}" for cause in causes(error))


def _without(failure: TargetError, spec: StoreSpec, tokens: Iterable[str]) -> TargetError:
    message = _in_one_line(redacted(spec, failure.message, tokens))
    if isinstance(failure, StoreRefused):
        return StoreRefused(message, code=_in_one_line(redacted(spec, failure.code, tokens)))
    return type(failure)(message)


def _in_one_line(text: str) -> str:
    """Return a text without newlines and of limited length. A few bytes of XML may stand for megabytes."""
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 3]}..."


def connection_failed(spec: StoreSpec, error: BaseException) -> TargetError:
    """Return the error of a failed connection: a refusal if the host is unknown, as of a wrong region."""
    lookup = first_cause(error, socket.gaierror)
    if lookup is not None and lookup.errno != socket.EAI_AGAIN:
        return refused(spec, "UnknownHost", "no server has the name that belongs to its region or account")
    if isinstance(error, _ODD):
        return unavailable(spec, f"its response cannot be understood ({type(error).__name__})")
    return unavailable(spec, error)


def not_opened(spec: StoreSpec, error: BaseException) -> TargetError:
    """Return the error of a session that could not be opened: a refusal, unless the connection failed."""
    if isinstance(error, OSError):
        return connection_failed(spec, error)
    return refused(spec, type(error).__name__, f"no session can be opened: {error}")


def error_of_status(spec: StoreSpec, status: int, code: str, message: str) -> TargetError:
    """Return the error of a response with a failure status, temporary or final."""
    if status in _TEMPORARY or (status >= 500 and status != 501):
        return unavailable(spec, f"{code}: {message}")
    return refused(spec, code, message)
