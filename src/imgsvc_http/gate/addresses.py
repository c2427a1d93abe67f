"""Addresses of clients, as rates count them."""

from __future__ import annotations

import functools
import ipaddress

from imgsvc_http.settings.sections import Networks

_NETWORK_OF_A_CLIENT = 64  # bits that a provider gives to a client by IPv6
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_REMEMBERED = 4096


@functools.lru_cache(_REMEMBERED)
def client_network(address: str) -> str:
    """Return an address of IPv4, or the network of an address of IPv6, which one client may have whole.

    An address of IPv6 that a translator made from one of IPv4 counts as that one, since all clients of the
    translator are in its network.
    """
    ip = _parsed(address)
    if not isinstance(ip, ipaddress.IPv6Address):
        return address
    if ip in _NAT64:
        return str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    inner = ip.ipv4_mapped or ip.sixtofour
    return str(inner or ipaddress.ip_network((ip, _NETWORK_OF_A_CLIENT), strict=False))


def is_within(address: str, networks: Networks) -> bool:
    """Return True if an address is in one of some networks."""
    ip = _parsed(address) if networks else None
    return ip is not None and any(ip in network for network in networks)


@functools.lru_cache(_REMEMBERED)
def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address, without the zone of a link-local one; None for a client without any."""
    try:
        return ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
