"""Verify notifications in Python, with the standard library only."""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Mapping


def is_genuine(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return True if the notification is signed with the secret and at most five minutes old.

    Args:
        headers: the request's headers, with names in lower case.
        body: the request's body as it came, before it is parsed.
        secret: ``whsec_...``, as ``imgsvc accounts webhook-secret`` shows it.
    """
    id_, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{id_}.{timestamp}.".encode("utf-8", "replace") + body, hashlib.sha256)
    expected = b"v1," + base64.b64encode(digest)
    # There are several after a renewal.
    signatures = headers.get("webhook-signature", "").encode("utf-8", "replace").split()
    return any(hmac.compare_digest(expected, given) for given in signatures)
