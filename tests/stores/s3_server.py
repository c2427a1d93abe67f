"""A bucket at a server that speaks S3, and a raw client to look into it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.stores.contract import Kept
from tests.stores.servers import radosgw

BUCKET = "imgsvc-pictures"
FOREIGN_BUCKET = "imgsvc-of-somebody-else"
CLASSES = (
    "reduced-redundancy",
    "standard-ia",
    "onezone-ia",
    "intelligent-tiering",
    "glacier",
    "deep-archive",
)
_HEADERS = ("Expires", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Disposition")


@attrs.frozen
class S3Server:
    """A server with a user who owns one bucket."""

    url: str
    key: str
    secret: str = attrs.field(repr=False)
    client: Any = attrs.field(repr=False)

    def read(self, name: str) -> Kept | None:
        """The object of a name as its owner reads it."""
        try:
            found = self.client.get_object(Bucket=BUCKET, Key=name)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                return None
            raise
        tags = self.client.get_object_tagging(Bucket=BUCKET, Key=name)["TagSet"]
        sent = found["ResponseMetadata"]["HTTPHeaders"]
        return Kept(
            data=found["Body"].read(),
            content_type=found["ContentType"],
            headers={name: sent[name.lower()] for name in _HEADERS if name.lower() in sent},
            metadata=found["Metadata"],
            tags={tag["Key"]: tag["Value"] for tag in tags},
            storage_class=found.get("StorageClass", "STANDARD").lower().replace("_", "-"),
        )


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Ceph's object gateway with a bucket."""
    key, secret = "GOOG1ECANARYKEYID", "canary/secret+of=the+user"
    with radosgw.gateway(tuple(name.upper().replace("-", "_") for name in CLASSES)) as gateway:
        gateway.add_user("owner", key, secret)
        client = _client(gateway.url, key, secret)
        client.create_bucket(Bucket=BUCKET)
        gateway.add_user("other", "OTHERKEYID", "other-secret")
        _client(gateway.url, "OTHERKEYID", "other-secret").create_bucket(Bucket=FOREIGN_BUCKET)
        yield S3Server(gateway.url, key, secret, client)


def _client(url: str, key: str, secret: str) -> Any:
    return botocore.session.Session().create_client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(s3={"addressing_style": "path"}),
    )
