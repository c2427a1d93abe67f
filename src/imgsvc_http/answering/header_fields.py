"""Header fields as HTTP has them: lists over several lines, directives, dates and file names."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

from multidict import MultiMapping

_DIRECTIVE = re.compile(r'([^\s,;="]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?')
_EXTENDED_NAME = re.compile(r""";\s*filename\*\s*=\s*"?(utf-8|iso-8859-1)'[^';"]*'([^;"]*)""", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_DATE = re.compile(
    r"(?:[A-Za-z]+, *)?\d{1,2}[ -][A-Za-z]{3}[ -](?:\d\d|[1-9]\d{3}) \d{1,2}:\d\d:\d\d"
    r"(?: (?:GMT|UTC?|[+-]\d{4}))?"
    r"|[A-Za-z]{3} [A-Za-z]{3} [ \d]?\d \d\d:\d\d:\d\d [1-9]\d{3}"
)


def combined(headers: MultiMapping[str], name: str) -> str | None:
    """Return all lines of a header as one list, or None if there is none."""
    lines = headers.getall(name, ())
    return ", ".join(lines) if lines else None


def directives(header: str) -> dict[str, str]:
    """Return the directives of a ``Cache-Control`` header, in lower case, with their values.

    >>> directives('public, Max-Age="60"')
    {'public': '', 'max-age': '60'}
    """
    found: dict[str, str] = {}
    for name, value in _DIRECTIVE.findall(header):
        found.setdefault(name.lower(), value.strip('"'))
    return found


def http_time(text: str) -> float | None:
    """Return the Unix time of a date in any form that HTTP has (RFC 9110, 5), or None if it is none.

    >>> http_time("Sun, 06 Nov 1994 08:49:37 GMT") == http_time("Sun Nov  6 08:49:37 1994") == 784111777
    True
    """
    if not _DATE.fullmatch(text.strip()):
        return None
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def extended_file_name(disposition: str) -> str:
    """Return the file name in ``filename*=UTF-8''a%20b.png``, or nothing if there is none.

    RFC 5987 has this notation for letters outside of ASCII. A name is a label: bytes that are not of its
    encoding are replaced. The parser of aiohttp warns of them instead, and so writes what a client sent to
    standard error.
    """
    match = _EXTENDED_NAME.search(disposition)
    return unquote(match[2], encoding=match[1], errors="replace") if match else ""


def file_name(label: str) -> str:
    """Return the name in a label of a file, without folders and control characters, if any of it is left.

    >>> file_name(r"C:\\photos\\shoe.jpg")
    'shoe.jpg'
    """
    name = without_controls(label.replace("\\", "/").rpartition("/")[2])[:255]
    return name if name.strip(". ") else ""


def without_controls(text: str) -> str:
    """Return a text without control characters, those of direction among them, and halves of characters."""
    return _CONTROL.sub("", text)
