"""Which addresses are one client."""

from __future__ import annotations

import ipaddress

import pytest

from imgsvc_http.gate.addresses import client_network, is_within


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("64:ff9b::192.0.2.7", "192.0.2.7"),
        ("2002:c000:207::5", "192.0.2.7"),
        ("", ""),
    ],
)
def test_addresses_that_one_client_may_have_are_one(address: str, client: str) -> None:
    assert client_network(address) == client


@pytest.mark.parametrize(
    ("address", "inside"), [("10.1.2.3", True), ("11.1.2.3", False), ("2001:db8::1", True), ("", False)]
)
def test_networks_hold_addresses_of_their_kind(address: str, inside: bool) -> None:
    networks = ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("2001:db8::/32")
    assert is_within(address, networks) is inside
    assert not is_within(address, ())
