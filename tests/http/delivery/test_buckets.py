"""Pictures from buckets: the origins of a service, at a server for each provider."""

from __future__ import annotations

import base64
import contextlib
import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import attrs
import pytest
from azure.storage.blob import BlobServiceClient
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from imgsvc_core.urls import Signer
from tests.http.delivery.conftest import CONFIG, Site, new_account, signer_for
from tests.http.delivery.web_origin import WebOrigin
from tests.http.service_process import Service, running
from tests.stores.s3_server import BUCKET, s3_server
from tests.stores.servers import google, oss
from tests.stores.servers.azurite import azurite
from tests.support import encoded, requires

pytestmark = pytest.mark.asyncio

STORES = ("s3", "azure", "google", "alibaba")
SOURCES = {"s3://": "s3", "abs://": "azure", "gs://": "google", "oss://cats/": "alibaba"}
_SECRET, _WRONG_SECRET = "canary/secret+of=the+user", "another/canary+of=the+user"
_ACCOUNT, _KEY, _WRONG_KEY = "imgsvcpictures", *(
    base64.b64encode(text).decode() for text in (b"canary-key-of-the-account", b"another-canary-key")
)  # fmt: skip


@attrs.frozen(kw_only=True)
class Bucket:
    """A bucket at a server.

    Args:
        put: writes an object.
        origin: the origin that reads it.
        denied: an origin that its credentials do not allow to be read.
        told: what is said of that.
    """

    put: Callable[[str, bytes], object]
    origin: Mapping[str, Any]
    denied: Mapping[str, Any]
    told: str = "the origin denies access."


@contextlib.contextmanager
def _s3() -> Iterator[Bucket]:
    with s3_server() as server:
        endpoint = {"endpoint_url": server.url, "region_name": "us-east-1"}
        origin = {"url": f"s3://{BUCKET}/in", "key": server.key, "client_kwargs": endpoint}
        yield Bucket(
            put=lambda name, data: server.client.put_object(Bucket=BUCKET, Key=name, Body=data),
            origin={**origin, "secret": server.secret},
            denied={**origin, "secret": _WRONG_SECRET},
        )


@contextlib.contextmanager
def _azure() -> Iterator[Bucket]:
    with azurite({_ACCOUNT: _KEY}) as url:
        place = f"DefaultEndpointsProtocol=http;BlobEndpoint={url}/{_ACCOUNT};AccountName={_ACCOUNT}"
        origins = (
            {"url": "az://pictures/in", "connection_string": f"{place};AccountKey={key}"}
            for key in (_KEY, _WRONG_KEY)
        )
        credential = {"account_name": _ACCOUNT, "account_key": _KEY}
        with BlobServiceClient(f"{url}/{_ACCOUNT}", credential=credential) as client:
            container = client.create_container("pictures")
            yield Bucket(
                put=lambda name, data: container.upload_blob(name, data, overwrite=True),
                origin=next(origins),
                denied=next(origins),
            )


@contextlib.contextmanager
def _google() -> Iterator[Bucket]:
    key, email = rsa.generate_private_key(65_537, 2048), "reader@imgsvc.iam.gserviceaccount.com"
    with google.front({email: key.public_key()}, "pictures", "foreign") as front:

        def put(name: str, data: bytes) -> None:
            url = f"{front.emulator}/upload/storage/v1/b/pictures/o?uploadType=media&name={quote(name)}"
            headers = {"Content-Type": "application/octet-stream"}
            urllib.request.urlopen(urllib.request.Request(url, data, headers, method="POST")).close()

        keyfile = {
            "type": "service_account",
            "client_email": email,
            "private_key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
            "token_uri": f"{front.url}/token",
        }
        options = {"token": keyfile, "endpoint_url": front.url}
        yield Bucket(
            put=put,
            origin={"url": "gs://pictures/in", **options},
            denied={"url": "gs://foreign/in", **options},
            told="Forbidden: b/foreign/o The account does not have access to the objects of the bucket.",
        )


@contextlib.contextmanager
def _alibaba() -> Iterator[Bucket]:
    with oss.server(keys={"LTAIKEY": _SECRET}, buckets={"cats": False}, region="eu-central-1") as server:

        def put(name: str, data: bytes) -> None:
            server.objects["cats", name] = oss.Stored(data, {})

        origin = {"url": "oss://cats/in", "key": "LTAIKEY", "endpoint": server.url}
        yield Bucket(
            put=put, origin={**origin, "secret": _SECRET}, denied={**origin, "secret": _WRONG_SECRET}
        )


@pytest.fixture(scope="session")
def buckets() -> Iterator[Mapping[str, Bucket]]:
    for module in ("s3fs", "adlfs", "gcsfs", "ossfs"):
        requires.module(module)
    with contextlib.ExitStack() as stack:
        opened = (_s3(), _azure(), _google(), _alibaba())
        yield {name: stack.enter_context(bucket) for name, bucket in zip(STORES, opened, strict=True)}


@pytest.fixture(scope="session")
def delivering(
    buckets: Mapping[str, Bucket], web: WebOrigin, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service with an origin in each bucket, and one with wrong credentials."""
    folder = tmp_path_factory.mktemp("buckets")
    (folder / "imgsvc.toml").write_text(CONFIG)
    origins = {name: bucket.origin for name, bucket in buckets.items()}
    origins |= {f"{name}-denied": bucket.denied for name, bucket in buckets.items()}
    never_fresh = {"cache.min_seconds": 0, "cache.default_seconds": 0, "cache.stale_seconds": 0}
    imgproxy = {"account": new_account(folder / "state"), "origins": SOURCES}
    settings = {
        "delivery.origins": json.dumps(origins),
        "delivery.dialects": json.dumps({"imgproxy": imgproxy}),
        "rate.pictures": 10**6,
        **never_fresh,
    }
    with running(folder / "state", settings, config=folder / "imgsvc.toml") as service:
        yield service


@pytest.fixture(scope="session")
def signer(delivering: Service) -> Signer:
    return signer_for(delivering)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_picture_in_a_bucket(site: Site, buckets: Mapping[str, Bucket], store: str) -> None:
    buckets[store].put("in/deep/ü %.jpg", encoded.jpeg().data)
    reply = await site.picture(f"{store}/deep/ü %.jpg", resize="40x", format="webp")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "image/webp"), reply.body
    assert reply.picture.size == (40, 27)
    assert "Last-Modified" in reply.headers


@pytest.mark.parametrize("start", SOURCES)
async def test_a_picture_in_a_bucket_by_a_url_of_imgproxy(
    site: Site, buckets: Mapping[str, Bucket], start: str
) -> None:
    buckets[SOURCES[start]].put("in/deep/1 #%.jpg", encoded.jpeg().data)
    name = f"{start}deep/1 #%.jpg"
    for source in (f"plain/{quote(name)}", base64.urlsafe_b64encode(name.encode()).decode()):
        reply = await site.get(f"/imgproxy/_/w:40/{source}")
        assert (reply.status, reply.picture.size) == (200, (40, 27)), reply.body


async def test_a_changed_object_gives_its_new_picture(
    site: Site, buckets: Mapping[str, Bucket], store: str
) -> None:
    buckets[store].put("in/changing.jpg", encoded.jpeg().data)
    url = site.signer.url(f"{store}/changing.jpg", resize="30x", format="png")
    first = await site.get(url)
    assert first.headers["X-Svc-Cache"] == "miss"
    known = await site.get(url, If_None_Match=first.headers["ETag"])
    assert (known.status, known.body) == (304, b"")
    again = await site.get(url)
    assert (again.headers["X-Svc-Cache"], again.body) == ("revalidated", first.body)
    buckets[store].put("in/changing.jpg", encoded.png_alpha().data)
    deadline = time.monotonic() + 60  # facts of objects are kept for a second
    while (later := await site.get(url, If_None_Match=first.headers["ETag"])).status == 304:
        assert time.monotonic() < deadline
    assert (later.status, later.headers["X-Svc-Cache"]) == (200, "miss")
    assert later.body != first.body


async def test_a_new_version_has_the_new_object(
    site: Site, buckets: Mapping[str, Bucket], store: str
) -> None:
    """Even if the object was looked at just now."""
    pictures = []
    for version, data in enumerate((encoded.jpeg().data, encoded.png_alpha().data)):
        buckets[store].put("in/versioned.jpg", data)
        url = site.signer.url(f"{store}/versioned.jpg", resize="30x", format="png", version=str(version))
        await site.picture(f"{store}/versioned.jpg", resize="30x", headers={"If_None_Match": '"any"'})
        pictures.append((await site.get(url)).body)
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize("path", ["nothing.jpg", "folder"])
async def test_what_a_bucket_does_not_have(
    site: Site, buckets: Mapping[str, Bucket], store: str, path: str
) -> None:
    buckets[store].put("in/folder/a.jpg", encoded.jpeg().data)
    reply = await site.picture(f"{store}/{path}", resize="40x")
    assert (reply.status, reply.json["message"]) == (404, f"Source '{store}/{path}' does not exist.")


async def test_wrong_credentials_are_told_and_not_shown(
    site: Site, buckets: Mapping[str, Bucket], store: str
) -> None:
    buckets[store].put("in/photo.jpg", encoded.jpeg().data)
    reply = await site.picture(f"{store}-denied/photo.jpg", resize="40x")
    assert reply.status == 424
    told = f"Source '{store}-denied/photo.jpg' cannot be read: {buckets[store].told}"
    assert reply.json["message"] == told
    log = (site.service.state.parent / f"{site.service.state.name}.log").read_text()
    config = site.service.imgsvc("serve", "--print-config")
    for secret in (_SECRET, _WRONG_SECRET, _KEY, _WRONG_KEY, "PRIVATE KEY"):
        for text in (log, config, str(reply.headers), reply.body.decode()):
            assert secret not in text
