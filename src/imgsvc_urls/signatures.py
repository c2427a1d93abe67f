"""Signatures of URLs: HMAC-SHA256 over the bytes that were sent."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Mapping

import attrs

from imgsvc_urls.errors import InvalidSignature

UNSIGNED = "unsigned"
"""The word in the place of a signature in unsigned URLs."""

KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The pattern of ids of signing keys."""

_SIGNATURE = re.compile(rf"({KEY_ID.pattern})\.([A-Za-z0-9_-]{{43}})")
_MAX_SHOWN = 120


@attrs.frozen
class SignedPath:
    """A path in its parts. ``text`` is all after the signature, as it was sent and signed.

    Without a signature, ``key_id`` and ``signature`` are `None`.
    """

    key_id: str | None
    signature: str | None
    text: str

    def check(self, secret: str | bytes) -> None:
        """Raise `InvalidSignature` unless the text was signed with this secret. Takes constant time."""
        if self.signature is None:
            raise InvalidSignature("The URL must be signed, got 'unsigned': sign it with a signing key.")
        if not hmac.compare_digest(sign(secret, self.text), self.signature):
            raise InvalidSignature(
                f"The signature of the URL is not that of signing key '{self.key_id}': sign the URL again, "
                "and send it without changes."
            )


def split(path: str) -> SignedPath:
    """Split a path ``/{signature}/{options}/{source}`` into signature and the rest.

    Raises:
        InvalidSignature: it does not begin with a signature or ``unsigned``.
    """
    head, slash, rest = path.removeprefix("/").partition("/")
    if head == UNSIGNED:
        return SignedPath(None, None, slash + rest)
    found = _SIGNATURE.fullmatch(head)
    if found is None:
        got = ascii(head[:_MAX_SHOWN])[1:-1][:_MAX_SHOWN]
        raise InvalidSignature(
            f"The URL must begin with its signature, {{key id}}.{{43 characters}}, or with {UNSIGNED}, "
            f"got '{got}'; copy the whole URL."
        )
    return SignedPath(found[1], found[2], slash + rest)


def verify(path: str, secrets: Mapping[str, str | bytes]) -> str:
    """Return all of a path after its signature.

    Args:
        path: ``/{signature}/{options}/{source}`` as it was sent.
        secrets: the secrets of signing keys, by their ids.

    Raises:
        InvalidSignature: it is not signed with one of the keys.
    """
    signed = split(path)
    secret = b"" if signed.key_id is None else secrets.get(signed.key_id)
    if secret is None:
        raise InvalidSignature(f"There is no signing key '{signed.key_id}': sign the URL with another key.")
    signed.check(secret)
    return signed.text


def sign(secret: str | bytes, text: str) -> str:
    """Return the signature of a text: HMAC-SHA256 in base64url without padding, 43 characters.

    >>> sign("a secret of a signing key", "/resize:800x/photos/shoe.jpg")
    'xApba_N2ueQzU3khbMT84dnkII3zmrEZ6pOQ5ye7zpc'
    """
    key = secret.encode() if isinstance(secret, str) else secret
    digest = hmac.digest(key, text.encode("utf-8", "surrogateescape"), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
