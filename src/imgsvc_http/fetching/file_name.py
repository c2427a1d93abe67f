"""File names in the notation that RFC 5987 gives headers for letters outside of ASCII."""

from __future__ import annotations

import re
from urllib.parse import unquote

_EXTENDED = re.compile(r""";\s*filename\*\s*=\s*"?(utf-8|iso-8859-1)'[^';"]*'([^;"]*)""", re.IGNORECASE)


def extended_file_name(disposition: str) -> str:
    """Return the file name in ``filename*=UTF-8''a%20b.png``, or nothing if there is none.

    A name is a label: bytes that are not of its encoding are replaced. The parser of aiohttp warns of them
    instead, and so writes what a client sent to standard error.
    """
    match = _EXTENDED.search(disposition)
    return unquote(match[2], encoding=match[1], errors="replace") if match else ""
