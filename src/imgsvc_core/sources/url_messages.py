"""URLs in messages, without their secrets, and the reasons of failures inside packages of stores."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from errno import ENOENT
from urllib.parse import unquote

from imgsvc_core._runtime.patterns import pattern
from imgsvc_core.errors import MissingDependency

_BARE = pattern(r"[A-Za-z][A-Za-z0-9+.-]*://")
_CREDENTIALS = pattern(r"(?<=://)(?:[^/'\"?#]*|[^\s/?#]*)@")
_FRAGMENT = pattern(r"((?i:https?)://[^#]*)#.*")
_EXTRAS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "google"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "azure"),
    "oss": "alibaba",
    **dict.fromkeys(("http", "https"), "http"),
}
"""The extra that brings the package of an fsspec protocol."""

_EMPTY_REASON = pattern(r"(^|: )(None|Unknown)$")  # words of botocore for responses without a message
_QUERY = pattern(r"(://[^\s'\"?]*)\?[^\s'\"]*")


def shown_url(url: str) -> str:
    """Return a URL, or a text with URLs in it, without credentials and queries, which may hold secrets.

    >>> shown_url("https://user:secret@example.org/a.jpg?token=secret")
    'https://example.org/a.jpg'
    """
    if _BARE.match(url):  # any character may be in it
        url = _FRAGMENT.sub(r"\1", url.partition("?")[0])
    return _QUERY.sub(r"\1", _CREDENTIALS.sub("", url))


def missing_package(subject: str, url: str, error: ImportError) -> MissingDependency:
    """Return the error for a URL whose protocol needs a package that is not installed."""
    needs = f"{subject} '{shown_url(url)}' needs a package that is not installed"
    for protocol in re.findall(r"([a-z0-9]+)://", url):
        if protocol in _EXTRAS:
            return MissingDependency(f"{needs}: install it with pip install 'imgsvc[{_EXTRAS[protocol]}]'.")
    return MissingDependency(f"{needs}: {error}.")


def reason_of(error: BaseException, url: str = "") -> str:
    """Return why the access to a URL failed: the first message in the chain of an error and its causes.

    A `FileNotFoundError` with a cause is skipped, since fsspec raises it for failures of any kind.
    """
    found: BaseException | None = error
    while found is not None:
        deeper = found.__cause__ or found.__context__
        message = _message(found)
        repeats_url = message.strip("/'\"") in url
        if message and not repeats_url and not (isinstance(found, FileNotFoundError) and deeper):
            return _redacted(url, message)
        error, found = found, deeper
    if isinstance(error, NotImplementedError):
        return "the protocol does not allow it"
    return os.strerror(ENOENT) if isinstance(error, FileNotFoundError | LookupError) else type(error).__name__


def _message(error: BaseException) -> str:
    status, message = getattr(error, "status", None), getattr(error, "message", None)
    if isinstance(status, int) and isinstance(message, str):  # a response of a web server
        return f"{status} {message}".strip()
    words = error.args[0] if isinstance(error, KeyError) and error.args else error  # its text has quotes
    text = " ".join(str(getattr(error, "strerror", None) or words).split())
    return _EMPTY_REASON.sub("", text).rstrip(".")


def _redacted(url: str, text: str) -> str:
    """Return a text without the secrets of a URL."""
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
