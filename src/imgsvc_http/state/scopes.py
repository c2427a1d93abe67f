"""What a key may be for."""

from __future__ import annotations

SCOPES = {
    "process": "processing pictures",
    "account": "the watermarks, keyfiles and webhooks of its account",
    "admin": "all that the other scopes allow",
}
"""Scopes of keys and their meaning; what an account is and has left of its quota is told to every key."""

ADMIN = "admin"

DEFAULT_SCOPES = ("process", "account")
