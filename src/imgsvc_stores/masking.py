"""Errors of providers, with the secrets of the store masked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from imgsvc_core.spec.store.declarations import StoreSpec
from imgsvc_stores.errors import StoreRefused, StoreUnavailable

_SHORTEST_SECRET = 4  # shorter secrets protect nothing, and are parts of many words


def refused(spec: StoreSpec, code: str, message: str) -> StoreRefused:
    """Return the error of a refused write, with the provider's code and message. Secrets in it are masked."""
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
    """Replace secrets in a text by stars. Of secrets that hold others, nothing is left."""
    long_enough = (secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)
    for secret in sorted(long_enough, key=len, reverse=True):
        in_json = json.dumps(secret)[1:-1]
        for written in (secret, in_json, quote(secret, safe=""), quote_plus(secret), quote(secret)):
            text = text.replace(written, "***")
    return text
