"""URLs as they are sent."""

from __future__ import annotations

import base64
import re
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from yarl import URL

_NAME = re.compile(r"(?=.{1,253}\.?$)[\w-]{1,63}(\.[\w-]{1,63})*\.?", re.ASCII)
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
    """Return True if a URL is one of http or https, with a host that is an address or may have one.

    yarl parses more, and decodes Punycode only when it is asked for the host.
    """
    try:
        return url.scheme in ("http", "https") and bool(url.host) and _may_have_address(url.raw_host or "")
    except ValueError:
        return False


def _may_have_address(host: str) -> bool:
    """Return True for an address, and for a name that is one by the rules of DNS.

    A zone, as in ``fe80::1%eth0``, has a meaning only on the machine that gave it.
    """
    return "%" not in host and bool(_NAME.fullmatch(host) or IPv6Address(host))


def bare(location: URL) -> URL:
    """Return the URL without credentials and fragment."""
    return location.with_user(None).with_fragment(None)


def authorization(location: URL) -> dict[str, str]:
    """Return the header that sends the credentials of a URL."""
    if location.user is None and location.password is None:
        return {}
    credentials = f"{location.user or ''}:{location.password or ''}".encode()
    return {"Authorization": f"Basic {base64.b64encode(credentials).decode('ascii')}"}
