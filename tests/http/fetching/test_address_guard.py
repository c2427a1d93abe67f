"""Only public addresses are connected to, in whatever form they are written."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from imgsvc_http.fetching.address_guard import AddressGuard, PrivateAddress, is_public
from tests.http.sources import serving

PRIVATE = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "fc00::/7", "fe80::/10", "ff00::/8",
    "2001:db8::/32", "100::/64", "3fff::/20", "5f00::/16", "64:ff9b:1::/48", "fec0::/10", "168.63.129.16/32",
]  # fmt: skip


@pytest.mark.parametrize("network", PRIVATE)
def test_both_ends_of_private_networks_are_refused(network: str) -> None:
    parsed = ipaddress.ip_network(network)
    assert not is_public(parsed[0])
    assert not is_public(parsed[-1])


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111"])
def test_public_addresses_pass(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


WITHIN = {
    "compatible": lambda inner: inner,
    "mapped": lambda inner: 0xFFFF << 32 | inner,
    "translated": lambda inner: 0xFFFF << 48 | inner,
    "NAT64": lambda inner: 0x64FF9B << 96 | inner,
    "Teredo": lambda inner: 0x20010000 << 96 | 0x5DB8D822 << 64 | inner ^ 0xFFFFFFFF,
    "6to4": lambda inner: 0x2002 << 112 | inner << 80 | 1,
}


@pytest.mark.parametrize("way", WITHIN)
@given(inner=st.ip_addresses(v=4))
@example(inner=ipaddress.IPv4Address("1.1.1.1"))
@example(inner=ipaddress.IPv4Address("127.0.0.1"))
def test_addresses_within_others_are_refused(way: str, inner: ipaddress.IPv4Address) -> None:
    assert not is_public(ipaddress.IPv6Address(WITHIN[way](int(inner))))


def test_networks_that_translate_addresses_can_be_allowed() -> None:
    guard = AddressGuard.allowing(["64:ff9b::/96"])
    guard.check("translated.example", ["64:ff9b::1.1.1.1"])
    with pytest.raises(PrivateAddress):
        guard.check("translated.example", ["2002:101:101::1"])


@given(st.ip_addresses())
def test_nothing_public_is_private_by_the_registry(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(address):
        assert not any((address.is_private, address.is_loopback, address.is_multicast))


def test_the_allow_list_lets_in_names_addresses_and_networks() -> None:
    guard = AddressGuard.allowing(["intranet.example", "10.1.0.0/16", "192.168.7.7"])
    guard.check("Intranet.Example.", ["172.16.0.9"])
    guard.check("other.example", ["10.1.255.255"])
    guard.check("other.example", ["192.168.7.7", "1.1.1.1"])
    for refused in (["10.2.0.0"], ["1.1.1.1", "127.0.0.1"], ["192.168.7.8"]):
        with pytest.raises(PrivateAddress, match=r"other\.example"):
            guard.check("other.example", refused)


@pytest.mark.asyncio
async def test_an_allowed_name_opens_its_address_to_no_other_host() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.host)

    async with (
        serving({"/": answer}) as url,
        aiohttp.ClientSession(connector=AddressGuard.allowing(["localhost"]).connector()) as session,
    ):
        named = url.replace("127.0.0.1", "localhost")
        for _ in range(2):
            async with session.get(named) as response:
                assert response.status == 200
            for other in (url, url.replace("127.0.0.1", "0x7f.1")):
                with pytest.raises((PrivateAddress, aiohttp.ClientError)):
                    await session.get(other)


@pytest_asyncio.fixture
async def port() -> AsyncIterator[int]:
    """A web server on loopback that nobody should reach."""
    reached: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        reached.append(request.host)
        return web.Response(text="secret")

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()
    assert reached == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "localhost.", "0x7f.1", "2130706433", "0177.0.0.1", "127.1",
     "[::ffff:127.0.0.1]", "0.0.0.0", "LOCALHOST"],
)  # fmt: skip
async def test_loopback_is_not_reached_however_it_is_written(host: str, port: int) -> None:
    guard = AddressGuard()
    async with aiohttp.ClientSession(connector=guard.connector()) as session:
        with pytest.raises((PrivateAddress, OSError, aiohttp.ClientError)) as caught:
            await session.get(f"http://{host}:{port}/")
    assert "secret" not in str(caught.value)


@pytest.mark.asyncio
async def test_the_connection_goes_to_what_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])  # a name that changes its mind

    def resolve(host: str, port: int, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in next(answers)]

    guard = AddressGuard()
    connector = guard.connector()
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    resolver = connector._resolver
    found = await resolver.resolve("rebinding.example", 80)
    assert [item["host"] for item in found] == ["93.184.216.34"]
    with pytest.raises(PrivateAddress):
        await resolver.resolve("rebinding.example", 80)
    await connector.close()
