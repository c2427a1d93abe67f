"""Alibaba's object storage, against a stand-in that verifies signatures and bodies."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from alibabacloud_oss_v2.signer import v4

import imgsvc_stores as stores
from tests.stores.contract import Destination, Kept, StoreContract, anonymous
from tests.stores.servers import oss

_KEY, _SECRET, _REGION = "LTAIKEYOFTHEUSER", "canary/secret+of=the+user", "eu-central-1"
_HEADERS = ("Expires", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Disposition")


@pytest.fixture(scope="module")
def server() -> Iterator[oss.Server]:
    with oss.server(
        keys={_KEY: _SECRET}, buckets={"pictures": True, "private": False}, region=_REGION
    ) as running:
        yield running


@pytest.fixture
def destination(server: oss.Server) -> Destination:
    def read(name: str) -> Kept | None:
        found = server.objects.get(("pictures", name))
        if found is None:
            return None
        headers = {key.lower(): value for key, value in found.headers.items()}
        return Kept(
            data=found.data,
            content_type=headers["content-type"],
            headers={key: headers[key.lower()] for key in _HEADERS if key.lower() in headers},
            metadata={
                key.removeprefix("x-oss-meta-"): value
                for key, value in headers.items()
                if key.startswith("x-oss-meta-")
            },
        )

    return Destination(
        store={
            "provider": "alibaba",
            "key": _KEY,
            "secret": _SECRET,
            "bucket": "pictures",
            "region": _REGION,
        },
        endpoints={"alibaba": server.url},
        read=read,
        refusals={
            "secret": ({"secret": "another-canary"}, ("SignatureDoesNotMatch",)),
            "key": ({"key": "NOBODYSCANARY"}, ("InvalidAccessKeyId",)),
            "bucket": ({"bucket": "nobodys-bucket"}, ("NoSuchBucket",)),
            "region": ({"region": "oss-us-west-1"}, ("InvalidArgument",)),
        },
        secrets=(_SECRET, "another-canary"),
    )


class TestAlibaba(StoreContract):
    """The contract, and what is Alibaba's own."""

    def test_a_bucket_may_be_private(self, destination: Destination, server: oss.Server) -> None:
        assert anonymous(destination.put(b"private", path="cat.webp", bucket="private")) is None
        assert server.objects["private", "cat.webp"].data == b"private"

    def test_a_region_may_be_written_as_in_addresses(self, destination: Destination) -> None:
        destination.put(b"region", path="region.webp", region=f"oss-{_REGION}")
        assert destination.kept("region.webp").data == b"region"

    def test_a_clock_that_is_wrong_is_refused(
        self, destination: Destination, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Slow(datetime.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Slow:
                return super().now(tz) - datetime.timedelta(hours=2)

        monkeypatch.setattr(v4.datetime, "datetime", Slow)
        with pytest.raises(stores.StoreRefused, match="RequestTimeTooSkewed"):
            destination.put(b"late", path="late.webp")
        monkeypatch.undo()
        assert destination.read("late.webp") is None

    def test_parts_of_an_upload_that_was_given_up_are_taken_back(
        self, destination: Destination, server: oss.Server
    ) -> None:
        async def run() -> bool:
            began = False
            async with stores.open_store(destination.store, endpoints=destination.endpoints) as store:
                item = stores.StoredObject(bytes(60_000_000), "given up.webp", "image/webp")
                task = asyncio.create_task(store.put(item))
                while not began and not task.done():
                    await asyncio.sleep(0.001)
                    began = any(parts for _, _, parts in list(server.uploads.values()))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            return began

        assert asyncio.run(run())
        assert server.uploads == {}
        assert destination.read("given up.webp") is None
