"""Hosts in URLs and certificates, and URLs that may have none."""

from __future__ import annotations

import ipaddress

from yarl import URL

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOCALHOST = "localhost"


def parse_address(host: str) -> Address | None:
    """Return the IP address in a host, or None if the host is a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def parse_url(text: str, *, encoded: bool = False) -> URL:
    """Parse a URL. `ValueError` if it is none."""
    try:
        return URL(text, encoded=encoded)
    except IndexError:  # of yarl, for http://[::1]@
        raise ValueError("a URL without a host") from None


def is_loopback(host: str) -> bool:
    """Return True if only programs of this machine reach a host."""
    address = parse_address(host)
    return host == LOCALHOST if address is None else address.is_loopback


def url_host(listening: str) -> str:
    """Return the host in the URL of a service that listens at a host: localhost for 127.0.0.1 and 0.0.0.0."""
    address = parse_address(listening)
    if address is None:
        return listening
    if address.is_unspecified or address == ipaddress.ip_address("127.0.0.1"):
        return LOCALHOST
    return f"[{address}]".replace("%", "%25") if address.version == 6 else str(address)
