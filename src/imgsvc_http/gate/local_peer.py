"""Whether a request comes from a browser that the user who runs the service has opened on this machine."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from aiohttp import web

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
_OF_PROXIES = re.compile("x-forwarded-.*|forwarded|via|x-real-ip|cf-connecting-ip", re.IGNORECASE)

_Host = ipaddress.IPv4Address | ipaddress.IPv6Address
_Address = tuple[_Host, int]


def is_of_own_user(request: web.BaseRequest) -> bool:
    """Return True if the client is a process of the user who runs the service, on this machine.

    It is False on systems that do not tell whose a connection is (only Linux does), and for requests with a
    header that proxies add, from a page of another site, or to another name than those of this machine: such
    a name may belong to a page of another site, too. A forwarder of the same user that adds no header is a
    client like any other. Blocks for a moment.
    """
    headers = request.headers
    if any(_OF_PROXIES.fullmatch(name) for name in headers):
        return False
    if headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return False
    if not _LOCAL_HOST.fullmatch(headers.get("Host", "")) or request.transport is None:
        return False
    peer = _address(request.transport.get_extra_info("peername"))
    own = _address(request.transport.get_extra_info("sockname"))
    if peer is None or own is None or not (peer[0].is_loopback and own[0].is_loopback):
        return False
    return (peer, own, os.getuid()) in _connections()


def _address(told: object) -> _Address | None:
    """Return an address of a socket as Python gives it."""
    if not isinstance(told, tuple) or len(told) < 2:
        return None
    try:
        return _plain(ipaddress.ip_address(told[0])), told[1]
    except ValueError:
        return None


def _plain(address: _Host) -> _Host:
    """Return an address of IPv4 as such, even if a socket of IPv6 has it."""
    return getattr(address, "ipv4_mapped", None) or address


def _connections() -> Iterator[tuple[_Address, _Address, int]]:
    """Yield both ends of the connections of this machine, with the user who has the first one."""
    for table in _TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, remote, *rest = line.split()
            yield _listed(local), _listed(remote), int(rest[4])


def _listed(text: str) -> _Address:
    """Return an address of the table, whose words have the byte order of the machine."""
    digits, _, port = text.partition(":")
    words = (int(digits[at : at + 8], 16) for at in range(0, len(digits), 8))
    data = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    return _plain(ipaddress.ip_address(data)), int(port, 16)
