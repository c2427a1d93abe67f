"""URLs as they are sent."""

from __future__ import annotations

import base64
import re
from urllib.parse import urlsplit

from yarl import URL

_ESCAPED = re.compile(r"(?:[!-$&-~]|%[0-9A-Fa-f]{2})*")


def as_written(url: str) -> URL:
    """Parse a URL, and keep its path and query letter by letter, as signatures of them may demand.

    A URL that is not escaped as RFC 3986 demands is escaped. `ValueError` if it is no URL.
    """
    parsed = URL(url)
    if not _ESCAPED.fullmatch(url):
        return parsed
    path, query = urlsplit(url)[2:4]
    return URL.build(
        scheme=parsed.scheme,
        authority=parsed.raw_authority,
        path=path or "/",
        query_string=query,
        encoded=True,
    )


def is_web(url: URL) -> bool:
    """Return True if a URL is one of http or https, with a host that can be decoded and looked up.

    yarl decodes Punycode only when it is asked for the host, so the URL itself may be parsed already. It
    leaves the length of labels to the resolver.
    """
    try:
        return url.scheme in ("http", "https") and bool(url.host and (url.raw_host or "").encode("idna"))
    except UnicodeError:
        return False


def bare(location: URL) -> URL:
    """Return the URL without credentials and fragment."""
    return location.with_user(None).with_fragment(None)


def authorization(location: URL) -> dict[str, str]:
    """Return the header that sends the credentials of a URL."""
    if location.user is None and location.password is None:
        return {}
    credentials = f"{location.user or ''}:{location.password or ''}".encode()
    return {"Authorization": f"Basic {base64.b64encode(credentials).decode('ascii')}"}
