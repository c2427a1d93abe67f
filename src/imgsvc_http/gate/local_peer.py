"""Whether a request comes from a browser that the user who runs the service has opened on this machine."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from aiohttp import web
from yarl import URL

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_FORWARDING = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "Via")

_Host = ipaddress.IPv4Address | ipaddress.IPv6Address
_Address = tuple[_Host, int]


def is_of_own_user(request: web.BaseRequest) -> bool:
    """Return True if the client is a process of the user who runs the service, on this machine.

    It is False on systems that do not tell whose a connection is (only Linux does), and for requests that
    come through a proxy, from a page of another site, or to another name than those of this machine: such a
    name may belong to a page of another site, too. Blocks for a moment.
    """
    if any(name in request.headers for name in _FORWARDING):
        return False
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return False
    if not _is_local_name(request.host) or request.transport is None:
        return False
    peer = _address(request.transport.get_extra_info("peername"))
    own = _address(request.transport.get_extra_info("sockname"))
    if peer is None or own is None or not peer[0].is_loopback:
        return False
    return (peer, own, os.getuid()) in _connections()


def _is_local_name(host: str) -> bool:
    try:
        return URL(f"http://{host}").host in _LOCAL_NAMES
    except ValueError:
        return False


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
