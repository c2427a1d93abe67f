"""What a host is called in a URL and in a certificate."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOCAL = "localhost"


def address_of(host: str) -> Address | None:
    """The address that a host is written as; nothing where it is a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def callable_at(listening: str) -> str:
    """The host of a URL for what listens at a host; localhost where that is any address, or the usual one."""
    address = address_of(listening)
    if address is None:
        return listening
    if address.is_unspecified or address == ipaddress.ip_address("127.0.0.1"):
        return LOCAL
    return f"[{address}]".replace("%", "%25") if address.version == 6 else str(address)
