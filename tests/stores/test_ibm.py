"""IBM's object storage: bearer tokens in front of a server that speaks S3."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator

import pytest

import imgsvc_stores as stores
from tests.stores.contract import Destination, StoreContract
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.servers import ibm
from tests.stores.watch import stalls_for_less

_API_KEY = "canary-api-key"
_ACLS = {"private": False, "authenticated-read": False, "public-read": True, "public-read-write": True}


@pytest.fixture(scope="module")
def front(s3: S3Server) -> Iterator[ibm.Front]:
    with ibm.front(s3.url, s3.key, s3.secret, api_key=_API_KEY) as running:
        yield running


@pytest.fixture
def destination(front: ibm.Front, s3: S3Server) -> Destination:
    return Destination(
        store={"provider": "ibm", "key": _API_KEY, "bucket": BUCKET, "region": "eu-de"},
        endpoints={"ibm": front.url, "ibm_token": front.url},
        read=s3.read,
        refusals={
            "secret": ({"key": "another-canary"}, ("BXNIM0415E",)),
            "bucket": ({"bucket": "nobodys-bucket"}, ("NoSuchBucket",)),
        },
        secrets=(_API_KEY, "another-canary"),
        acls=_ACLS,
    )


class TestIbm(StoreContract):
    """The contract, and what is IBM's own."""

    def test_tokens_are_not_in_the_log(
        self, destination: Destination, front: ibm.Front, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        destination.put(b"quiet", path="quiet.webp")
        assert "quiet.webp" in caplog.text
        assert not [token for token in front.tokens if token in caplog.text]


def test_a_token_serves_many_objects_and_is_renewed_before_it_ends(
    destination: Destination, front: ibm.Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> list[int]:
        counts = [len(front.tokens)]
        now = time.monotonic()
        async with stores.StorePool(endpoints=destination.endpoints) as pool:
            store = stores.open_store(destination.store, pool=pool)
            for later in (0, 60, 3400, 3500):
                monkeypatch.setattr(
                    "imgsvc_stores.providers.tokens.time.monotonic", lambda at=later: now + at
                )
                await store.put(stores.StoredObject(b"token", "token.webp", "image/webp"))
                counts.append(len(front.tokens))
            monkeypatch.undo()
        return [count - counts[0] for count in counts[1:]]

    assert asyncio.run(run()) == [1, 1, 2, 2]


def test_a_slow_token_server_holds_nobody_else_up(
    destination: Destination, front: ibm.Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(front, "token_seconds", 3)
    assert stalls_for_less(destination, 1.5)
