"""Which addresses may be connected to: public ones, and private ones that the operator names."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import attrs
from aiohttp import AddrInfoType, ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from imgsvc_http.fetching.resolver import Resolver
from imgsvc_http.fetching.source_connection import SourceConnection
from imgsvc_http.runtime.private_names import connect_with

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# IPv4 within IPv6: compatible, mapped, translated in two ways, Teredo, 6to4.
_TRANSLATED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "2001::/32", "2002::/16")
)
# Networks that older Python versions take for public, and the metadata server of a cloud.
_RESERVED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "3fff::/20", "fec0::/10")
)
_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_HOST: ContextVar[str] = ContextVar("the host that is being connected to")


class PrivateAddress(OSError):
    """A host is, or resolves to, an address that is not public."""

    def __init__(self, host: str) -> None:
        super().__init__(f"'{host}' is not a public address")
        self.host = host


def is_public(address: Address) -> bool:
    """Return True if an address belongs to the public internet.

    An IPv6 address that contains an IPv4 address does not: where it leads is up to a translator on the way.
    """
    if address.is_multicast or _within(address, _RESERVED):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global
    return address.is_global and not address.is_reserved and not _within(address, _TRANSLATED)


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _normalized(host: str) -> str:
    return host.strip().rstrip(".").lower()


@attrs.frozen
class AddressGuard:
    """Decides which hosts may be connected to.

    ``names`` and ``networks`` are those that the operator allows although they are private.
    """

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def allowing(cls, entries: Iterable[str]) -> AddressGuard:
        """Return a guard with an allow-list of host names, addresses and networks."""
        names, networks = [], []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry.strip(), strict=False))
            except ValueError:
                names.append(_normalized(entry))
        return cls(frozenset(names), tuple(networks))

    def check(self, host: str, addresses: Iterable[str]) -> None:
        """Raise `PrivateAddress` unless every address of a host may be connected to."""
        if not all(self.permits(_parsed(address), host) for address in addresses):
            raise PrivateAddress(host)

    def permits(self, address: Address, host: str) -> bool:
        """Return True if an address may be connected to for a host. An allowed name permits no other host."""
        return is_public(address) or _normalized(host) in self.names or _within(address, self.networks)

    def connector(self, **options: Any) -> TCPConnector:
        """Return a connector for aiohttp that connects to the checked addresses and to nothing else."""
        return _Connector(_CheckedResolver(self), use_dns_cache=False, socket_factory=self._socket, **options)

    def _socket(self, info: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, place = info
        if not self.permits(_parsed(str(place[0])), _HOST.get()):
            raise PrivateAddress(str(place[0]))
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


class _Connector(TCPConnector):
    """Tells the check at the socket which host a connection is for, and closes its resolver."""

    def __init__(self, resolver: AbstractResolver, **options: Any) -> None:
        super().__init__(resolver=resolver, **options)
        self._checked = resolver
        connect_with(self, SourceConnection)

    async def close(self, *, abort_ssl: bool = False) -> None:
        await super().close(abort_ssl=abort_ssl)
        await self._checked.close()

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
        token = _HOST.set(req.url.raw_host or "")
        try:
            return await super().connect(req, traces, timeout)
        finally:
            _HOST.reset(token)


class _CheckedResolver(AbstractResolver):
    """Refuses names that resolve to private addresses."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._resolver = Resolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.addresses(host, family)
        self._guard.check(host, [address for _, _, address in found])
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=family, proto=protocol, flags=_NUMERIC
            )
            for family, protocol, address in found
        ]

    async def close(self) -> None:
        self._resolver.close()


def _parsed(address: str) -> Address:
    """Parse an address, without the zone of a link-local one."""
    return ipaddress.ip_address(address.strip("[]").partition("%")[0])
