"""Sources and targets in buckets: keys are exact, and objects have an encoding and a media type."""

from __future__ import annotations

import gzip

import pytest

import imgsvc_core as imgsvc
from imgsvc_core.errors import SourceTooLarge, SourceUnreachable
from tests.stores.s3_server import BUCKET, S3Server
from tests.support import encoded


@pytest.fixture
def server(s3_environment: S3Server) -> S3Server:
    return s3_environment


@pytest.mark.parametrize(("name", "media_type"), [("small.webp", "image/webp"), ("small.jpg", "image/jpeg")])
def test_an_object_in_s3_has_its_media_type(server: S3Server, name: str, media_type: str) -> None:
    result = imgsvc.process(encoded.png().data, {"resize": {"width": 8}}, f"s3://{BUCKET}/{name}")
    kept = server.read(name)
    assert kept is not None
    assert kept.content_type == media_type
    assert len(kept.data) == result.output.bytes


@pytest.mark.parametrize("key", ["a//b.png", "/first.png", "last.png/", "a#b.png"])
def test_a_key_is_exact(server: S3Server, key: str) -> None:
    server.client.put_object(Bucket=BUCKET, Key=key, Body=encoded.png().data)
    assert imgsvc.inspect(f"s3://{BUCKET}/{key}").format == "png"
    with pytest.raises(SourceUnreachable):
        imgsvc.inspect(f"s3://{BUCKET}/{key}/")


def test_an_object_that_is_stored_encoded(server: S3Server) -> None:
    def put(data: bytes, encoding: str) -> str:
        server.client.put_object(Bucket=BUCKET, Key="encoded", Body=data, ContentEncoding=encoding)
        return f"s3://{BUCKET}/encoded"

    data = encoded.png().data
    for body, encoding in (
        (gzip.compress(data), "gzip"),
        (gzip.compress(data), "aws-chunked,gzip"),
        (data, "utf-8"),
    ):
        assert imgsvc.inspect(put(body, encoding)).format == "png"
    with pytest.raises(SourceUnreachable, match=r"Source '.*encoded' ended before it was complete"):
        imgsvc.inspect(put(gzip.compress(data)[:-9], "gzip"))
    with pytest.raises(SourceTooLarge):
        imgsvc.inspect(put(gzip.compress(bytes(10**7)), "gzip"), limits=imgsvc.Limits(source_bytes=10**6))
