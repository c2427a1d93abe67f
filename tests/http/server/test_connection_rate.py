"""How often a client connects, and what that means for the others."""

from __future__ import annotations

import asyncio
import ipaddress
from pathlib import Path

import pytest

from imgsvc_http.server.connection_rate import ConnectionRate
from tests.http.calls import call
from tests.http.service_process import Service, running

pytestmark = pytest.mark.asyncio

BURST = 2  # at one connection in a second


async def turns(rate: ConnectionRate, *addresses: str) -> int:
    """Return how many of the connections need not wait, as time stands still."""
    loop = asyncio.get_running_loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "time", lambda: 0.0)
        waits = [asyncio.create_task(rate.wait(address)) for address in addresses]
        for _ in range(20 * len(waits)):
            await asyncio.sleep(0)
    done = [task for task in waits if task.done()]
    for task in waits:
        task.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    assert all(task.exception() is None for task in done)
    return len(done)


async def test_connections_of_an_address_wait_after_a_burst_and_keep_no_other_waiting() -> None:
    rate = ConnectionRate(1, ())
    assert await turns(rate, *["192.0.2.1"] * 5) == BURST
    assert await turns(rate, *["192.0.2.2"] * 5) == BURST


async def test_connections_that_wait_get_their_turn_later() -> None:
    rate = ConnectionRate(20, ())
    started = asyncio.get_running_loop().time()
    async with asyncio.timeout(60):
        await asyncio.gather(*(rate.wait("192.0.2.1") for _ in range(45)))
    assert asyncio.get_running_loop().time() - started >= 5 / 20 - 0.01


async def test_a_client_may_have_all_addresses_of_a_network_by_ipv6() -> None:
    rate = ConnectionRate(1, ())
    assert await turns(rate, *(f"2001:db8::{number}" for number in range(1, 6))) == BURST
    assert await turns(rate, "2001:db8:0:1::1", "fe80::1%eth0") == 2
    assert await turns(rate, *(f"::ffff:192.0.2.{number}" for number in range(1, 6))) == 5


async def test_proxies_do_not_wait_and_nobody_does_without_a_rate() -> None:
    proxies = ConnectionRate(1, (ipaddress.ip_network("192.0.2.0/24"),))
    assert await turns(proxies, *["192.0.2.1"] * 5) == 5
    assert await turns(ConnectionRate(0, ()), *["192.0.2.1"] * 5) == 5


async def test_a_client_that_connects_again_and_again_waits_and_others_do_not(tmp_path: Path) -> None:
    async def connect(service: Service, source: str) -> None:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", service.port, ssl=service.tls, server_hostname="localhost", local_addr=(source, 0)
        )
        writer.transport.abort()

    with running(tmp_path / "state", {"server.connections_per_second": 0.1}) as service:
        await connect(service, "127.0.0.2")
        again = asyncio.create_task(connect(service, "127.0.0.2"))
        async with service.client() as client:
            assert (await call(client, "GET", "/1.0/account")).status == 200
        assert not again.done()
        again.cancel()
