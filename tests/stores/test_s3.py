"""The providers that speak S3, against a server that checks signatures, bodies and rights."""

from __future__ import annotations

import datetime
from typing import Any

import botocore.auth
import pytest

from imgsvc_core import errors
from tests.stores.contract import Destination, StoreContract
from tests.stores.s3_server import BUCKET, CLASSES, S3Server

_ACLS = {"private": False, "authenticated-read": False, "public-read": True, "public-read-write": True}
_REFUSALS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "secret": ({"secret": "another-canary"}, ("SignatureDoesNotMatch",)),
    "key": ({"key": "NOBODYSCANARY"}, ("InvalidAccessKeyId",)),
    "bucket": ({"bucket": "nobodys-bucket"}, ("NoSuchBucket",)),
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
        with pytest.raises(errors.StoreRefused, match="RequestTimeTooSkewed"):
            destination.put(b"late", path="late.webp")
        monkeypatch.undo()
        assert destination.read("late.webp") is None


class TestDigitalOcean(StoreContract):
    @pytest.fixture
    def destination(self, s3: S3Server) -> Destination:
        return _destination(s3, "digitalocean", _ACLS, region="ams3")


class TestGoogleWithDeveloperKeys(StoreContract):
    @pytest.fixture
    def destination(self, s3: S3Server) -> Destination:
        return _destination(s3, "google", {"private": False, "authenticatedRead": False, "publicRead": True})
