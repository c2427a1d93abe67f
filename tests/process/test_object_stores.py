"""Targets in buckets: the object has the result's bytes and its media type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from s3fs import S3FileSystem

import imgsvc_core as imgsvc
from tests.stores.s3_server import BUCKET, S3Server, s3_server
from tests.support import encoded


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", running.key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", running.secret)
        patch.setenv("AWS_ENDPOINT_URL", running.url)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        # fsspec keeps the connection that an earlier test of this process made with another environment.
        S3FileSystem.clear_instance_cache()
        yield running
        S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize(("name", "media_type"), [("small.webp", "image/webp"), ("small.jpg", "image/jpeg")])
def test_an_object_in_s3_has_its_media_type(server: S3Server, name: str, media_type: str) -> None:
    result = imgsvc.process(encoded.png().data, {"resize": {"width": 8}}, f"s3://{BUCKET}/{name}")
    kept = server.read(name)
    assert kept is not None
    assert kept.content_type == media_type
    assert len(kept.data) == result.output.bytes
