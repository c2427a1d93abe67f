"""URLs in messages: without the secrets that they hold, and with the reason that a store's package hides."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from errno import ENOENT
from urllib.parse import unquote

_CREDENTIALS = re.compile(r"(?<=://)[^/\s'\"?#]*@")
_NOTHING_SAID = re.compile(r"(^|: )(None|Unknown)$")  # by botocore, of answers without words
_QUERY = re.compile(r"(://[^\s'\"?]*)\?[^\s'\"]*")


def shown_url(url: str) -> str:
    """A URL, or a text with URLs in it, without credentials and queries, which may hold secrets.

    >>> shown_url("https://user:secret@example.org/a.jpg?token=secret")
    'https://example.org/a.jpg'
    """
    return _QUERY.sub(r"\1", _CREDENTIALS.sub("", url))


def reason_of(error: BaseException, url: str = "") -> str:
    """Why something failed, as reading a URL: the first of an error and its causes that says it in words.

    A `FileNotFoundError` with a cause says less than its cause: fsspec raises it for whatever went wrong.
    """
    found: BaseException | None = error
    while found is not None:
        deeper = found.__cause__ or found.__context__
        said = _said(found)
        if said and said.strip("/'\"") not in url and not (isinstance(found, FileNotFoundError) and deeper):
            return _without(url, said)
        error, found = found, deeper
    if isinstance(error, NotImplementedError):
        return "the protocol does not allow it"
    return os.strerror(ENOENT) if isinstance(error, FileNotFoundError | LookupError) else type(error).__name__


def _said(error: BaseException) -> str:
    status, message = getattr(error, "status", None), getattr(error, "message", None)
    if isinstance(status, int) and isinstance(message, str):  # the answer of a web server
        return f"{status} {message}".strip()
    words = " ".join(str(getattr(error, "strerror", None) or error).split())
    return _NOTHING_SAID.sub("", words).rstrip(".")


def _without(url: str, text: str) -> str:
    """A text in which the secrets of a URL stand nowhere."""
    for secret in sorted(set(_secrets(url)), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return shown_url(text)


def _secrets(url: str) -> Iterator[str]:
    for link in url.split("::"):
        credentials = _CREDENTIALS.search(link)
        query = link.partition("?")[2]
        password = credentials[0][:-1].partition(":")[2] if credentials else ""
        values = [pair.partition("=")[2] for pair in query.split("&")]
        for secret in (password, query, *values):
            yield from {secret, unquote(secret)} - {""}
