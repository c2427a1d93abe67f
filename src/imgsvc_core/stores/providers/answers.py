"""Answers of HTTP servers that refuse a request, for the providers whose client is aiohttp."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp

from imgsvc_core.errors import TargetError
from imgsvc_core.stores.declarations import StoreSpec
from imgsvc_core.stores.failures import answered, connection_failed
from imgsvc_core.stores.providers.tokens import Tokens

_T = TypeVar("_T")

TIMEOUT = aiohttp.ClientTimeout(sock_connect=5, sock_read=30)


class Refusal(OSError):
    """An answer whose status says no, with the provider's code and words."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message


def translated(spec: StoreSpec, error: BaseException) -> TargetError:
    """What aiohttp raised as an error of the library."""
    if isinstance(error, Refusal):
        return answered(spec, error.status, error.code, error.message)
    return connection_failed(spec, error)


async def json_object(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The JSON object of an answer; empty where it is something else."""
    try:
        found = await response.json(content_type=None)
    except (LookupError, RecursionError, ValueError):  # no JSON, too deep, or in no encoding
        return {}
    return found if isinstance(found, dict) else {}


def words(said: object, otherwise: object) -> str:
    """What an answer says in a place where a word or a number should be."""
    return str(said if said and isinstance(said, str | int) else otherwise)


def unauthorized(error: Exception) -> bool:
    """Whether an answer refuses a token."""
    return isinstance(error, Refusal) and error.status == HTTPStatus.UNAUTHORIZED


async def renewing(
    tokens: Tokens[Any],
    call: Callable[[], Awaitable[_T]],
    withdrawn: Callable[[Exception], bool] = unauthorized,
) -> _T:
    """The result of a call; a token that was withdrawn before its time is replaced, once."""
    token = await tokens.current()
    try:
        return await call()
    except Exception as error:
        if not withdrawn(error):
            raise
    tokens.forget(token)
    return await call()
