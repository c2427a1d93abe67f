"""Beginnings of URLs with wildcards, as settings write them."""

from __future__ import annotations

import re
from urllib.parse import unquote

_MOST_DECODED = 4
_SEPARATORS = re.compile(r"[/\\?#]")
_IN_HOST = r"([A-Za-z0-9._-]*)"
_AT_END_OF_HOST = r"([A-Za-z0-9._-]*(?::[0-9]{1,5})?)"
_IN_PATH = r"([^/?#\\]*)"


def url_pattern(text: str) -> re.Pattern[str]:
    """Return a pattern of the beginnings of URLs that a text stands for; each ``*`` is a group of it.

    ``*`` never crosses a slash, a query or a fragment. In the host it matches characters of host names alone,
    and at its end a port: otherwise ``https://*.example.org/`` would match ``https://evil.net?.example.org/``.

    >>> url_pattern("https://*.example.org/").match("https://img.example.org/a.jpg").groups()
    ('img',)
    >>> url_pattern("https://*.example.org/").match("https://evil.net?.example.org/a.jpg")
    """
    scheme, colon, rest = text.partition("://")
    if not colon:
        return re.compile(_expression(text, _IN_PATH))
    host, slash, path = rest.partition("/")
    last = _AT_END_OF_HOST if host.endswith("*") else ""
    parts = (_expression(scheme, _IN_HOST), colon, _expression(host.removesuffix("*"), _IN_HOST), last, slash)
    return re.compile("".join(parts) + _expression(path, _IN_PATH))


def climbs(url: str) -> bool:
    """Return True if any server may take a segment of a URL for the parent folder, however it is encoded."""
    for _ in range(_MOST_DECODED):
        if ".." in _SEPARATORS.split(url):
            return True
        url = unquote(url)
    return unquote(url) != url


def _expression(text: str, wildcard: str) -> str:
    return wildcard.join(map(re.escape, text.split("*")))
