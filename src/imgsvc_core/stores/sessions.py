"""The interface of a provider's module, and what all providers share."""

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
"""Longest private key of a keyfile, in PEM: 4,096 bits. Checking a larger one takes seconds."""


async def _no_wait() -> None:
    """Continue at once."""


@attrs.frozen
class Access:
    """What a session is opened with.

    ``pace`` is awaited before work that takes milliseconds of the event loop, so that only one such piece of
    work runs in each round of the loop.

    ``endpoints`` replace addresses of a provider, such as ``aws`` or ``ibm_token``; `ENDPOINTS` lists their
    names. They come from the operator, never from a request.
    """

    spec: StoreSpec
    keyfile: Keyfile | None = attrs.field(default=None, repr=False)
    endpoints: Mapping[str, str] = attrs.field(factory=dict)
    pace: Callable[[], Awaitable[None]] = attrs.field(default=_no_wait, repr=False)

    def endpoint(self, name: str, default: str) -> str:
        """Return an address without a trailing slash."""
        return self.endpoints.get(name, default).rstrip("/")


class Session(Protocol):
    """A connection with one set of credentials. It may write many objects concurrently."""

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        """Write an object as a whole or not at all, replacing an earlier one. Return its public URL.

        A ``Content-Type`` in the headers of ``spec`` wins over ``content_type``.

        Raises:
            StoreRefused: made by `refused`. It is not retried.
            StoreUnavailable: made by `unavailable`. It is retried while there is time.
        """

    async def close(self) -> None:
        """Close the connections."""


_SHORTEST_SECRET = 4  # shorter ones protect nothing, and are parts of many words

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
    """Open a session with the provider of a store.

    Raises:
        MissingDependency: the packages for the provider are not installed.
        StoreRefused: the provider refused the credentials.
        StoreUnavailable: the provider could not be reached.
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
    """Return the error of a write that the provider refused, with its code and message, secrets masked."""
    code, message = redacted(spec, code), redacted(spec, message).strip().rstrip(".")
    return StoreRefused(f"Store {spec.provider} refused the result: {code}: {message}.", code=code)


def unavailable(spec: StoreSpec, reason: object) -> StoreUnavailable:
    """Return the error of a provider that cannot be reached or fails temporarily."""
    text = redacted(spec, str(reason)).strip().rstrip(".")
    return StoreUnavailable(f"Store {spec.provider} is not available: {text or type(reason).__name__}.")


def redacted(spec: StoreSpec, text: str, tokens: Iterable[str] = ()) -> str:
    """Mask the secrets of a store in a text, in every encoding that clients write them in."""
    return masked(text, (*spec.secrets(), *tokens))


def masked(text: str, secrets: Iterable[str]) -> str:
    """Replace secrets in a text by stars."""
    for secret in filter(lambda secret: len(secret) >= _SHORTEST_SECRET, secrets):
        in_json = json.dumps(secret)[1:-1]
        for written in (secret, in_json, quote(secret, safe=""), quote_plus(secret), quote(secret)):
            text = text.replace(written, "***")
    return text
