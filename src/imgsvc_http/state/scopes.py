"""Scopes of API keys."""

from __future__ import annotations

SCOPES = {
    "process": "processing pictures",
    "account": "the watermarks, keyfiles, webhooks, cached pictures, last requests and keys of its account",
    "admin": "all that the other scopes allow",
}
"""The scopes of API keys. `GET /1.0/account` is allowed with every key."""

ADMIN = "admin"

DEFAULT_SCOPES = ("process", "account")
