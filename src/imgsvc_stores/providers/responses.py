"""Error responses, for the providers whose client is aiohttp."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp

from imgsvc_core.errors import TargetError
from imgsvc_core.spec.store.declarations import StoreSpec
from imgsvc_stores.failures import connection_failed, error_of_status
from imgsvc_stores.providers.tokens import Tokens

_T = TypeVar("_T")

TIMEOUT = aiohttp.ClientTimeout(sock_connect=5, sock_read=30)


class ResponseError(OSError):
    """A response with a failure status, with the provider's code and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message


def translated(spec: StoreSpec, error: BaseException) -> TargetError:
    """Translate an error of aiohttp into one of the library."""
    if isinstance(error, ResponseError):
        return error_of_status(spec, error.status, error.code, error.message)
    return connection_failed(spec, error)


async def json_object(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return the JSON object of a response, or an empty object for any other body."""
    try:
        found = await response.json(content_type=None)
    except (LookupError, RecursionError, ValueError):  # not JSON, too deep, or an unknown encoding
        return {}
    return found if isinstance(found, dict) else {}


def text_of(said: object, otherwise: object) -> str:
    """Return a word or number of a response as text, or ``otherwise``."""
    return str(said if said and isinstance(said, str | int) else otherwise)


def unauthorized(error: Exception) -> bool:
    """Return True if a response refused the token."""
    return isinstance(error, ResponseError) and error.status == HTTPStatus.UNAUTHORIZED


async def retry_with_new_token(
    tokens: Tokens[Any],
    call: Callable[[], Awaitable[_T]],
    withdrawn: Callable[[Exception], bool] = unauthorized,
) -> _T:
    """Return the result of a call. If its token was revoked, retry once with a new one."""
    token = await tokens.current()
    try:
        return await call()
    except Exception as error:  # packages of stores raise anything
        if not withdrawn(error):
            raise
    tokens.forget(token)
    return await call()
