"""What lies behind the errors that clients of providers raise."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from imgsvc_core.errors import ImgsvcError, StoreRefused, TargetError
from imgsvc_core.stores.declarations import StoreSpec
from imgsvc_core.stores.sessions import redacted, refused, unavailable

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
"""What clients raise whose server answers something that none should."""

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


async def guarded(
    spec: StoreSpec,
    work: Awaitable[_T],
    translated: Callable[[StoreSpec, Exception], TargetError],
    tokens: Callable[[], Iterable[str]] = tuple,
) -> _T:
    """What the work of a provider's client gives; whatever it raises becomes an error of the library.

    Its cause is a description: errors of clients hold requests, with their credentials. ``tokens`` are what
    credentials were exchanged for, and as secret.
    """
    try:
        return await work
    except ImgsvcError:
        raise
    except Exception as error:
        failure: ImgsvcError | None = first_cause(error, ImgsvcError)
        cause = failure.__cause__ if failure else OSError(redacted(spec, _described(error), tokens()))
        if failure is None:
            failure = _without(translated(spec, error), spec, tokens())
    raise failure from cause  # here, where the error itself is no context


def _described(error: BaseException) -> str:
    return "; from ".join(f"{type(cause).__name__}: {cause}" for cause in causes(error))


def _without(failure: TargetError, spec: StoreSpec, tokens: Iterable[str]) -> TargetError:
    message = redacted(spec, failure.message, tokens)
    if isinstance(failure, StoreRefused):
        return StoreRefused(message, code=redacted(spec, failure.code, tokens))
    return type(failure)(message)


def connection_failed(spec: StoreSpec, error: BaseException) -> TargetError:
    """No answer came: refused for good where no such host exists, as with an unknown region."""
    lookup = first_cause(error, socket.gaierror)
    if lookup is not None and lookup.errno != socket.EAI_AGAIN:
        return refused(spec, "UnknownHost", "no server has the name that belongs to its region or account")
    if isinstance(error, _ODD):
        return unavailable(spec, f"its answer cannot be understood ({type(error).__name__})")
    return unavailable(spec, error)


def not_opened(spec: StoreSpec, error: BaseException) -> TargetError:
    """No session came to be: refused for good where it is not for the lack of a connection."""
    if isinstance(error, OSError):
        return connection_failed(spec, error)
    return refused(spec, type(error).__name__, f"no session can be opened: {error}")


def answered(spec: StoreSpec, status: int, code: str, message: str) -> TargetError:
    """The error of an answer with a status that says no: for the moment, or for good."""
    if status in _TEMPORARY or (status >= 500 and status != 501):
        return unavailable(spec, f"{code}: {message}")
    return refused(spec, code, message)
