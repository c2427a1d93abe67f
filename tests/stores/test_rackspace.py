"""Rackspace's Cloud Files, against OpenStack's Swift behind a front for identity and CDN."""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import attrs
import pytest

import imgsvc_stores as stores
from tests.stores.contract import Destination, Kept, StoreContract, anonymous
from tests.stores.servers import rackspace
from tests.stores.servers.swift import swift
from tests.stores.watch import stalls_for_less

_ACCOUNT, _USER, _KEY = "imgsvc", "owner", "canary-api-key"


@attrs.frozen
class Cluster:
    """Swift, its front, and the owner's own way to the objects."""

    url: str
    front: rackspace.Front
    token: str = attrs.field(repr=False)

    def ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(
            f"{self.url}/v1/AUTH_{_ACCOUNT}/{quote(path)}",
            method=method,
            headers={"X-Auth-Token": self.token},
            data=b"" if method == "PUT" else None,
        )
        return urllib.request.urlopen(request, timeout=60)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        swift({(_ACCOUNT, _USER): _KEY}) as url,
        rackspace.front(url, _ACCOUNT, enabled={"pictures"}) as front,
    ):
        login = {"X-Auth-User": f"{_ACCOUNT}:{_USER}", "X-Auth-Key": _KEY}
        request = urllib.request.Request(f"{url}/auth/v1.0", headers=login)
        with urllib.request.urlopen(request, timeout=60) as answer:
            made = Cluster(url, front, answer.headers["X-Auth-Token"])
        for container in ("pictures", "masked"):
            made.ask("PUT", container).close()
        yield made


@pytest.fixture
def destination(cluster: Cluster) -> Destination:
    def read(name: str) -> Kept | None:
        try:
            with cluster.ask("GET", f"pictures/{name}") as answer:
                return Kept(data=answer.read(), content_type=answer.headers["Content-Type"])
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    return Destination(
        store={
            "provider": "rackspace",
            "username": _USER,
            "key": _KEY,
            "container": "pictures",
            "region": "iad",
        },
        endpoints={"rackspace": cluster.front.url},
        read=read,
        refusals={
            "secret": ({"key": "another-canary"}, ("unauthorized",)),
            "user": ({"username": "nobody"}, ("unauthorized",)),
            "bucket": ({"container": "nobodys-container"}, ("404",)),
            "not on the CDN": ({"container": "masked"}, ("404",)),
            "region": ({"region": "syd"}, ("UnknownRegion",)),
        },
        secrets=(_KEY, "another-canary", *cluster.front.tokens),
    )


class TestRackspace(StoreContract):
    """The contract, and what is Rackspace's own."""

    @pytest.mark.parametrize(("secure", "place"), [(None, "secure"), (True, "secure"), (False, "public")])
    def test_the_host_is_the_one_that_the_cdn_names(
        self, destination: Destination, cluster: Cluster, secure: bool | None, place: str
    ) -> None:
        changes = {} if secure is None else {"secure": secure}
        url = destination.put(b"cdn", path="cdn/a b.webp", **changes)
        assert url == f"{cluster.front.url}/{place}/pictures/cdn/a%20b.webp"
        assert anonymous(url) == b"cdn"

    def test_nothing_is_written_to_a_container_that_is_not_on_the_cdn(
        self, destination: Destination, cluster: Cluster
    ) -> None:
        with pytest.raises(stores.StoreRefused, match="not enabled for the CDN"):
            destination.put(b"masked", path="masked.webp", container="masked")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            cluster.ask("GET", "masked/masked.webp")

    def test_tokens_are_in_no_log_and_no_error(
        self, destination: Destination, cluster: Cluster, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        destination.put(b"quiet", path="quiet.webp")
        assert cluster.front.tokens
        assert not [token for token in cluster.front.tokens if token in caplog.text]


def test_a_token_that_is_withdrawn_is_replaced(destination: Destination, cluster: Cluster) -> None:
    async def run() -> None:
        async with stores.open_store(destination.store, endpoints=destination.endpoints) as store:
            item = stores.StoredObject(b"token", "token.webp", "image/webp")
            await store.put(item)
            asked = len(cluster.front.asked)
            await store.put(item)
            assert len(cluster.front.asked) == asked
            cluster.front.withdrawn.add(cluster.front.tokens[-1])
            with pytest.raises(stores.StoreRefused, match="401"):
                await store.put(item)  # Swift gives the same token again until it ends
            assert len(cluster.front.asked) == asked + 1
            cluster.front.withdrawn.clear()
            await store.put(item)

    asyncio.run(run())


def test_a_token_is_renewed_before_it_ends(
    destination: Destination, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.front, "life_seconds", 310)

    async def run() -> list[int]:
        counts = [len(cluster.front.asked)]
        now = time.monotonic()
        async with stores.open_store(destination.store, endpoints=destination.endpoints) as store:
            for later in (0, 5, 15):
                monkeypatch.setattr(
                    "imgsvc_stores.providers.tokens.time.monotonic", lambda at=later: now + at
                )
                await store.put(stores.StoredObject(b"token", "token.webp", "image/webp"))
                counts.append(len(cluster.front.asked))
        return [count - counts[0] for count in counts[1:]]

    assert asyncio.run(run()) == [1, 1, 2]


def test_a_slow_identity_service_holds_nobody_else_up(
    destination: Destination, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination.put(b"warm", path="warm.webp")
    monkeypatch.setattr(cluster.front, "token_seconds", 1.5)
    assert stalls_for_less(destination, 0.3)


def test_hosts_that_are_not_the_providers_are_not_believed() -> None:
    from imgsvc_stores.providers.rackspace import Identity, ResponseError

    spec = stores.parse_store(
        {"provider": "rackspace", "username": "u", "key": "k" * 8, "container": "pictures", "region": "iad"}
    )
    assert isinstance(spec, stores.Rackspace)
    for address, believed in {
        "https://storage101.iad3.clouddrive.com/v1/MossoCloudFS_1": True,
        "http://storage101.iad3.clouddrive.com/v1/MossoCloudFS_1": False,
        "https://169.254.169.254/v1/MossoCloudFS_1": False,
        "https://clouddrive.com.example.org/v1/x": False,
        "https://storage.clouddrive.com@example.org/v1/x": False,
    }.items():
        services = {"object-store": [{"region": "IAD", "publicURL": address}]}
        identity = Identity(None, spec, "https://identity.example", own_addresses=False)  # type: ignore[arg-type]
        if believed:
            assert identity._address(services, "object-store") == address
        else:
            with pytest.raises(ResponseError, match="UnknownRegion"):
                identity._address(services, "object-store")
