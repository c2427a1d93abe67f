"""The address of a client and the encryption of its connection, as trusted proxies report them.

They tell it in ``X-Forwarded-For`` and ``X-Forwarded-Proto``. ``Forwarded`` (RFC 7239) counts only where both
are missing: a proxy that sets those passes on a ``Forwarded`` that the client wrote.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from aiohttp import web
from multidict import CIMultiDictProxy

from imgsvc_http.gate.addresses import is_within
from imgsvc_http.settings.sections import Networks

_FOR, _PROTO, _FORWARDED = "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded"
_PAIR = re.compile(r'\s*([\w!#$%&\'*+.^`|~-]+)=("(?:[^"\\]|\\.)*"|[^",;\s]*)\s*([,;]|$)')
_WITH_PORT = re.compile(r"(?:\[(.+)\]|([\d.]+))(?::\w+)?")  # of IPv6 in brackets, or IPv4


def client_of(request: web.BaseRequest, proxies: Networks) -> tuple[str, bool]:
    """Return the address that a client calls from, and True if its own connection is encrypted.

    Reports of proxies count as far as the proxies can be trusted. In a list, the address of the client comes
    first.
    """
    if not proxies or not is_within(request.remote or "", proxies):
        return request.remote or "", request.secure
    told = _told(request.headers, _PROTO, "proto")
    is_secure = told[0].lower() == "https" if told else request.secure
    for hop in reversed(_told(request.headers, _FOR, "for")):
        try:
            address = _address(hop)
        except ValueError:
            break
        if not any(address in network for network in proxies):
            return str(address), is_secure
    return request.remote or "", is_secure


def _told(headers: CIMultiDictProxy[str], name: str, parameter: str) -> Sequence[str]:
    """Return what each proxy tells, the one next to the client first."""
    if _FOR in headers or _PROTO in headers:
        lines = headers.getall(name, ())
        return [item.strip() for item in ",".join(lines).split(",")] if lines else ()
    return _in_forwarded(",".join(headers.getall(_FORWARDED, ())), parameter)


def _in_forwarded(text: str, parameter: str) -> Sequence[str]:
    """Return the values of a parameter in a ``Forwarded`` header; nothing if it cannot be read."""
    found, end = [], 0
    while end < len(text):
        pair = _PAIR.match(text, end)
        if pair is None:
            return ()
        if pair[1].lower() == parameter:
            quoted = pair[2].startswith('"')
            found.append(re.sub(r"\\(.)", r"\1", pair[2][1:-1]) if quoted else pair[2])
        end = pair.end()
    return found


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address that may have a port. Raise `ValueError` if it is none."""
    found = _WITH_PORT.fullmatch(text)
    address = ipaddress.ip_address((found[1] or found[2]) if found else text)
    return getattr(address, "ipv4_mapped", None) or address
