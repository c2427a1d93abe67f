"""What proxies tell of a client, in all forms in which they tell it."""

from __future__ import annotations

import ipaddress

import aiohttp
import pytest
from aiohttp import web

from imgsvc_http.gate.proxies import client_of
from tests.http.sources import serving

pytestmark = pytest.mark.asyncio

PROXIES = (ipaddress.ip_network("127.0.0.1"), ipaddress.ip_network("10.0.0.0/8"))
DIRECT = "127.0.0.1"
FOR, PROTO, FORWARDED = "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded"


async def told(*headers: tuple[str, str], trusted: bool = True) -> str:
    proxies = PROXIES if trusted else ()

    async def answer(request: web.Request) -> web.Response:
        address, is_secure = client_of(request, proxies)
        return web.Response(text=f"{address} {is_secure}")

    async with (
        serving({"/": answer}) as url,
        aiohttp.ClientSession() as client,
        client.get(url, headers=headers) as response,
    ):
        return await response.text()


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7:51234", "203.0.113.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:db8::7]:51234", "2001:db8::7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("198.51.100.1, 203.0.113.7:1, 10.0.0.1:443", "203.0.113.7"),
        ("198.51.100.1,unknown", DIRECT),
        ("203.0.113.7:", DIRECT),
        ("", DIRECT),
    ],
)
async def test_addresses_may_have_ports(value: str, address: str) -> None:
    assert await told((FOR, value)) == f"{address} False"
    element = f'for="{value}"' if ":" in value else f"for={value}"
    if "," not in value:
        assert await told((FORWARDED, f"proto=http;{element}")) == f"{address} False"
    assert await told((FOR, value), trusted=False) == f"{DIRECT} False"


@pytest.mark.parametrize(
    ("lines", "secure"),
    [
        (["https"], True), (["HTTPS"], True), (["http"], False), ([""], False), (["https,http"], True),
        (["http, https"], False), (["https", "http"], True), (["wss"], False),
    ],
)  # fmt: skip
async def test_of_several_protocols_that_of_the_client_comes_first(lines: list[str], secure: bool) -> None:
    assert await told(*((PROTO, line) for line in lines)) == f"{DIRECT} {secure}"
    assert await told(*((PROTO, line) for line in lines), trusted=False) == f"{DIRECT} False"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['For="[2001:db8:cafe::17]:4711";proto=https;by=203.0.113.43'], "2001:db8:cafe::17 True"),
        (["for=192.0.2.60;proto=https, for=10.1.1.1;proto=http"], "192.0.2.60 True"),
        (["for=192.0.2.60 ; proto=https", "for=198.51.100.17;proto=http"], "198.51.100.17 True"),
        (['proto="ht\\tps";for="192\\.0.2.60"'], "192.0.2.60 True"),
        (["for=_hidden;proto=https"], f"{DIRECT} True"),
        (['for="192.0.2.60, proto=https'], f"{DIRECT} False"),
        (["nonsense"], f"{DIRECT} False"),
        # A quote that the client leaves open would take in what the proxy adds.
        (['for=192.0.2.60;proto=https, x="', 'for="203.0.113.7"'], f"{DIRECT} False"),
        (['for=192.0.2.60;proto=https, x=", for="203.0.113.7:80"'], f"{DIRECT} False"),
    ],
)
async def test_forwarded_is_read_as_rfc_7239_has_it(lines: list[str], expected: str) -> None:
    assert await told(*((FORWARDED, line) for line in lines)) == expected


async def test_a_client_cannot_add_forwarded_to_what_a_proxy_sets() -> None:
    forged = (FORWARDED, "for=192.0.2.60;proto=https")
    assert await told(forged, (FOR, "203.0.113.7"), (PROTO, "http")) == "203.0.113.7 False"
    assert await told(forged, (PROTO, "http")) == f"{DIRECT} False"
    assert await told(forged, (FOR, "203.0.113.7")) == "203.0.113.7 False"
