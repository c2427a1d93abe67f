"""URLs as they are sent."""

from __future__ import annotations

import base64
import re
from ipaddress import IPv6Address
from urllib.parse import quote, urlsplit, urlunsplit

from yarl import URL

from imgsvc_http.settings.url_host import parse_url

_NAME = re.compile(r"(?=.{1,253}\.?$)[\w-]{1,63}(\.[\w-]{1,63})*\.?", re.ASCII)
_NOT_SENDABLE = re.compile(r"[^!-~]|%(?![0-9A-Fa-f]{2})")


def as_written(url: str) -> URL:
    """Parse a URL, and keep its path and query letter by letter, as signatures of them may demand.

    Only what a request cannot hold is escaped. `ValueError` if it is no URL.
    """
    scheme, authority, path, query = urlsplit(url)[:4]
    return URL.build(
        scheme=scheme,
        authority=parse_url(f"{scheme}://{authority}").raw_authority,
        path=_sendable(path) or "/",
        query_string=_sendable(query),
        encoded=True,
    )


def redirected(location: URL, target: str) -> URL:
    """Return the target of a redirect from a location, letter by letter. `ValueError` if it is no URL.

    Args:
        location: where the redirect came from.
        target: the value of ``Location``: a URL, or a reference relative to the location. Surrogates stand
            for bytes that are not UTF-8.
    """
    scheme, authority, path, query = urlsplit(target)[:4]
    reference = urlunsplit((scheme, authority, _sendable(path), _sendable(query), ""))
    return as_written(str(location.join(parse_url(reference, encoded=True))))


def _sendable(text: str) -> str:
    return _NOT_SENDABLE.sub(lambda found: quote(found[0].encode("utf-8", "surrogateescape"), safe=""), text)


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
