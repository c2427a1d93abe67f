"""What a key may be for."""

from __future__ import annotations

SCOPES = {
    "process": "processing pictures",
    "account": "looking after its account: watermarks, keyfiles, webhooks, quota",
    "admin": "administration of the service",
}
"""Scopes of keys and their meaning."""

DEFAULT_SCOPES = ("process", "account")
