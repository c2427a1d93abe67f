"""The providers that speak S3, against a server that checks signatures, bodies and rights."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import botocore.auth
import pytest

import imgsvc_stores as stores
from tests.stores.contract import Destination, StoreContract
from tests.stores.s3_server import BUCKET, CLASSES, FOREIGN_BUCKET, S3Server

_ACLS = {"private": False, "authenticated-read": False, "public-read": True, "public-read-write": True}
_REFUSALS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "secret": ({"secret": "another-canary"}, ("SignatureDoesNotMatch",)),
    "key": ({"key": "NOBODYSCANARY"}, ("InvalidAccessKeyId",)),
    "bucket": ({"bucket": "nobodys-bucket"}, ("NoSuchBucket",)),
    "permission": ({"bucket": FOREIGN_BUCKET}, ("AccessDenied",)),
}


def _destination(s3: S3Server, provider: str, acls: dict[str, bool], **more: Any) -> Destination:
    return Destination(
        store={"provider": provider, "key": s3.key, "secret": s3.secret, "bucket": BUCKET, **more},
        endpoints={provider: s3.url},
        read=s3.read,
        refusals=_REFUSALS,
        secrets=(s3.secret, "another-canary"),
        acls=acls,
        classes=CLASSES,
        large_tags=False,  # of what comes in parts, Ceph forgets them
    )


class TestAws(StoreContract):
    @pytest.fixture
    def destination(self, s3: S3Server) -> Destination:
        return _destination(s3, "aws", _ACLS, region="us-east-1")

    def test_a_clock_that_is_wrong_is_refused(
        self, destination: Destination, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        right = botocore.auth.get_current_datetime

        def wrong(**arguments: Any) -> datetime.datetime:
            found: datetime.datetime = right(**arguments)
            return found - datetime.timedelta(hours=2)

        monkeypatch.setattr(botocore.auth, "get_current_datetime", wrong)
        with pytest.raises(stores.StoreRefused, match="RequestTimeTooSkewed"):
            destination.put(b"late", path="late.webp")
        monkeypatch.undo()
        assert destination.read("late.webp") is None

    def test_parts_of_an_upload_that_was_given_up_are_taken_back(
        self, destination: Destination, s3: S3Server
    ) -> None:
        async def run() -> bool:
            began = False
            store = stores.open_store(destination.store, endpoints=destination.endpoints)
            async with store:
                item = stores.StoredObject(bytes(40_000_000), "given up.webp", "image/webp")
                task = asyncio.create_task(store.put(item))
                while not began and not task.done():
                    await asyncio.sleep(0.005)
                    began = bool(await asyncio.to_thread(_uploads, s3))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            return began

        assert asyncio.run(run())
        assert _uploads(s3) == []
        assert destination.read("given up.webp") is None


def _uploads(s3: S3Server) -> list[Any]:
    found: list[Any] = s3.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return found


class TestDigitalOcean(StoreContract):
    @pytest.fixture
    def destination(self, s3: S3Server) -> Destination:
        return _destination(s3, "digitalocean", _ACLS, region="ams3")


class TestGoogleWithDeveloperKeys(StoreContract):
    @pytest.fixture
    def destination(self, s3: S3Server) -> Destination:
        return _destination(s3, "google", {"private": False, "authenticatedRead": False, "publicRead": True})
