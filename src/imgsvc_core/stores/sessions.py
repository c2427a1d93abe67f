"""The interface that every provider implements, and what all of them share."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import quote, quote_plus

import attrs

from imgsvc_core.errors import MissingDependency, StoreRefused, StoreUnavailable
from imgsvc_core.stores.declarations import StoreSpec

Keyfile = Mapping[str, Any]
"""The JSON object of a service account's keyfile."""

MOST_KEY_CHARACTERS = 3500
"""Of its private key in PEM: one of 4,096 bits. To check a larger one takes seconds."""


async def _at_once() -> None:
    """The turn of whoever is alone."""


@attrs.frozen
class Access:
    """What a session is opened with.

    ``turn`` is awaited before work that takes milliseconds of the event loop, so that many who open sessions
    at the same time do it one in each round of the loop.

    ``endpoints`` replace addresses of a provider, such as ``aws`` or ``ibm_token``, by others; `ENDPOINTS` of
    the declarations are their names. They come from whoever operates the program, never from a request.
    """

    spec: StoreSpec
    keyfile: Keyfile | None = attrs.field(default=None, repr=False)
    endpoints: Mapping[str, str] = attrs.field(factory=dict)
    turn: Callable[[], Awaitable[None]] = attrs.field(default=_at_once, repr=False)

    def endpoint(self, name: str, default: str) -> str:
        """An address without a slash at its end."""
        return self.endpoints.get(name, default).rstrip("/")


class Session(Protocol):
    """A connection with one set of credentials; it serves many objects, also at the same time."""

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        """Write an object, or write it once more, whole or not at all; its public URL.

        ``content_type`` holds unless the headers of ``spec`` say otherwise.

        Raises:
            StoreRefused: made by `refused`; it is not tried again.
            StoreUnavailable: made by `unavailable`; it is tried again while there is time.
        """

    async def close(self) -> None:
        """Close the connections."""


_SHORTEST_SECRET = 4  # shorter ones open nothing, and are parts of many words

_MODULES = {
    "aws": "aws",
    "google": "google_developer",
    "google keyfile": "google_keyfile",
    "digitalocean": "digitalocean",
    "alibaba": "alibaba",
    "rackspace": "rackspace",
    "microsoft": "microsoft",
    "ibm": "ibm",
}
"""Modules of `imgsvc_core.stores.providers`; each has ``async def connect(access: Access) -> Session``."""


async def connect(access: Access) -> Session:
    """Open a session at the provider of a store.

    Raises:
        MissingDependency: the packages for the provider are not installed.
        StoreRefused: the provider refuses the credentials.
        StoreUnavailable: the provider cannot be reached.
    """
    kind = access.spec.provider + (" keyfile" if access.keyfile is not None else "")
    extra = "s3" if kind == "google" else access.spec.extra
    try:
        name = f"imgsvc_core.stores.providers.{_MODULES[kind]}"
        module = await asyncio.to_thread(
            importlib.import_module, name
        )  # a quarter of a second the first time
    except ImportError as error:
        raise MissingDependency(
            f"Storing at {access.spec.provider} needs a package that is not installed ({error.name}): "
            f"install imgsvc[{extra}]."
        ) from error
    session: Session = await module.connect(access)
    return session


def refused(spec: StoreSpec, code: str, message: str) -> StoreRefused:
    """The error of a write that the provider refused, with its own code and words, without secrets."""
    code, message = redacted(spec, code), redacted(spec, message).strip().rstrip(".")
    return StoreRefused(f"Store {spec.provider} refused the result: {code}: {message}.", code=code)


def unavailable(spec: StoreSpec, reason: object) -> StoreUnavailable:
    """The error of a provider that cannot be reached, or fails for the moment."""
    text = redacted(spec, str(reason)).strip().rstrip(".")
    return StoreUnavailable(f"Store {spec.provider} is not available: {text or type(reason).__name__}.")


def redacted(spec: StoreSpec, text: str, tokens: Iterable[str] = ()) -> str:
    """A text in which nothing secret is left, in any of the ways that clients write it."""
    return hidden(text, (*spec.secrets(), *tokens))


def hidden(text: str, secrets: Iterable[str]) -> str:
    """A text with stars in the place of secrets."""
    for secret in filter(lambda secret: len(secret) >= _SHORTEST_SECRET, secrets):
        in_json = json.dumps(secret)[1:-1]
        for written in (secret, in_json, quote(secret, safe=""), quote_plus(secret), quote(secret)):
            text = text.replace(written, "***")
    return text
