"""Access to a provider, and the session that it opens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import attrs

from imgsvc_core.spec.store.declarations import StoreSpec

Keyfile = Mapping[str, Any]
"""The JSON object of a service account's keyfile."""

MOST_KEY_CHARACTERS = 3500
"""Longest private key of a keyfile, in PEM: 4,096 bits. Checking a larger one takes seconds."""


@attrs.frozen
class Access:
    """The credentials of a session, and its settings.

    ``pace`` is awaited before work that takes milliseconds of the event loop, so that only one such piece of
    work runs in each round of the loop.

    ``endpoints`` replace addresses of a provider, such as ``aws`` or ``ibm_token``; `ENDPOINTS` lists their
    names. They come from the operator, never from a request.
    """

    spec: StoreSpec
    keyfile: Keyfile | None = attrs.field(repr=False)
    endpoints: Mapping[str, str]
    pace: Callable[[], Awaitable[None]] = attrs.field(repr=False)

    def endpoint(self, name: str, default: str) -> str:
        """Return an address without a trailing slash."""
        return self.endpoints.get(name, default).rstrip("/")


class Session(Protocol):
    """A connection with one set of credentials. It may write many objects concurrently."""

    async def write(self, spec: StoreSpec, name: str, data: bytes, content_type: str) -> str:
        """Write an object as a whole or not at all, replacing an earlier one. Return its public URL.

        A ``Content-Type`` in the headers of ``spec`` wins over ``content_type``.

        Raises:
            StoreRefused: made by `masking.refused`. The write is not retried.
            StoreUnavailable: made by `masking.unavailable`. The write is retried until its time is up.
        """

    async def close(self) -> None:
        """Close the connections."""
