"""Pictures from buckets: the origins of a service, at a server for each provider."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import io
import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import attrs
import numpy as np
import pytest
from azure.storage.blob import BlobServiceClient, ContentSettings
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from PIL import Image

from imgsvc_core.sources import open_filesystem, read_object
from imgsvc_urls import Signer
from tests.http.fetching.test_content_encodings import ENCODERS
from tests.http.service_process import Service, running
from tests.http.ways.conftest import CONFIG, Site, new_account, signer_for
from tests.http.ways.web_origin import WebOrigin
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.servers import google, oss
from tests.stores.servers.azurite import azurite
from tests.support import encoded, requires

pytestmark = pytest.mark.asyncio

LIMIT = 10_000_000
STORES = ("s3", "azure", "google", "alibaba")
SOURCES = {"s3://": "s3", "abs://": "azure", "gs://": "google", "oss://cats/": "alibaba"}
_SECRET, _WRONG_SECRET = "canary/secret+of=the+user", "another/canary+of=the+user"
_ACCOUNT, _KEY, _WRONG_KEY = "imgsvcpictures", *(
    base64.b64encode(text).decode() for text in (b"canary-key-of-the-account", b"another-canary-key")
)  # fmt: skip


class Put(Protocol):
    """Writes an object with a ``Content-Encoding`` and ``Cache-Control``, or without one that is empty."""

    def __call__(self, name: str, data: bytes, encoding: str = "", cache: str = "") -> None: ...


@attrs.frozen(kw_only=True)
class Bucket:
    """A bucket at a server.

    Args:
        put: writes an object.
        reads: how often an object was read, if the server counts that.
        origin: the origin that reads it.
        denied: an origin that its credentials do not allow to be read.
    """

    put: Put
    origin: Mapping[str, Any]
    denied: Mapping[str, Any]
    reads: Callable[[str], int] | None = None


def _s3(server: S3Server) -> Bucket:
    endpoint = {"endpoint_url": server.url, "region_name": "us-east-1"}
    origin = {"url": f"s3://{BUCKET}/in", "key": server.key, "client_kwargs": endpoint}

    def put(name: str, data: bytes, encoding: str = "", cache: str = "") -> None:
        more = {"ContentEncoding": encoding} if encoding else {}
        more |= {"CacheControl": cache} if cache else {}
        server.client.put_object(Bucket=BUCKET, Key=name, Body=data, **more)

    return Bucket(
        put=put,
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

            def put(name: str, data: bytes, encoding: str = "", cache: str = "") -> None:
                settings = ContentSettings(content_encoding=encoding or None, cache_control=cache or None)
                container.upload_blob(name, data, overwrite=True, content_settings=settings)

            yield Bucket(
                put=put,
                origin=next(origins),
                denied=next(origins),
            )


def _send(method: str, url: str, data: bytes, media_type: str) -> None:
    request = urllib.request.Request(url, data, {"Content-Type": media_type}, method=method)
    urllib.request.urlopen(request).close()


@contextlib.contextmanager
def _google() -> Iterator[Bucket]:
    key, email = rsa.generate_private_key(65_537, 2048), "reader@imgsvc.iam.gserviceaccount.com"
    with google.front({email: key.public_key()}, "pictures", "foreign") as front:

        def put(name: str, data: bytes, encoding: str = "", cache: str = "") -> None:
            query = f"uploadType=media&name={quote(name, safe='')}"
            _send("POST", f"{front.emulator}/upload/storage/v1/b/pictures/o?{query}", data, "image/jpeg")
            address = google.object_address(front.emulator, "pictures", name)
            facts = json.dumps({"contentEncoding": encoding, "cacheControl": cache}).encode()
            _send("PATCH", address, facts, "application/json")

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
        )


@contextlib.contextmanager
def _alibaba() -> Iterator[Bucket]:
    with oss.server(keys={"LTAIKEY": _SECRET}, buckets={"cats": False}, region="eu-central-1") as server:

        def put(name: str, data: bytes, encoding: str = "", cache: str = "") -> None:
            headers = {"Content-Encoding": encoding, "Cache-Control": cache}
            told = {name: value for name, value in headers.items() if value}
            server.objects["cats", name] = oss.Stored(data, told)

        origin = {"url": "oss://cats/in", "key": "LTAIKEY", "endpoint": server.url}
        yield Bucket(
            put=put,
            origin={**origin, "secret": _SECRET},
            denied={**origin, "secret": _WRONG_SECRET},
            reads=lambda name: server.reads["cats", name],
        )


@pytest.fixture(scope="session")
def buckets(s3: S3Server) -> Iterator[Mapping[str, Bucket]]:
    for module in ("s3fs", "adlfs", "gcsfs", "ossfs"):
        requires.module(module)
    with contextlib.ExitStack() as stack:
        others = (stack.enter_context(bucket) for bucket in (_azure(), _google(), _alibaba()))
        yield dict(zip(STORES, (_s3(s3), *others), strict=True))


@pytest.fixture(scope="session")
def delivering(
    buckets: Mapping[str, Bucket], web: WebOrigin, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service with an origin in each bucket, and one with wrong credentials."""
    folder = tmp_path_factory.mktemp("buckets")
    (folder / "imgsvc.toml").write_text(CONFIG)
    origins = {name: bucket.origin for name, bucket in buckets.items()}
    origins |= {f"{name}-denied": bucket.denied for name, bucket in buckets.items()}
    origins["s3-whole"] = {**buckets["s3"].origin, "url": f"s3://{BUCKET}"}
    never_fresh = {"cache.min_seconds": 0, "cache.default_seconds": 0, "cache.stale_seconds": 0}
    imgproxy = {"account": new_account(folder / "state"), "origins": SOURCES}
    settings = {
        "delivery.origins": json.dumps(origins),
        "delivery.dialects": json.dumps({"imgproxy": imgproxy}),
        "rate.pictures": 10**6,
        "limits.source_bytes": LIMIT,
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


async def test_what_an_object_says_of_caches_later_counts(
    site: Site, buckets: Mapping[str, Bucket], store: str
) -> None:
    """Even if its bytes and its ETag have not changed."""
    url = site.signer.url(f"{store}/later.jpg", resize="30x")
    for directive, scope in (("", "public"), ("no-store", "no-store")):
        buckets[store].put("in/later.jpg", encoded.jpeg().data, cache=directive)
        deadline = time.monotonic() + 60  # facts of objects are kept for a second
        while not (await site.get(url)).headers["Cache-Control"].startswith(scope):
            assert time.monotonic() < deadline


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


@pytest.mark.parametrize(
    "encoding", ["gzip", "x-gzip", "deflate", "br", "zstd", "aws-chunked,gzip", "gzip, gzip"]
)
async def test_an_object_that_is_stored_encoded(
    site: Site, buckets: Mapping[str, Bucket], store: str, encoding: str
) -> None:
    data = encoded.jpeg().data
    for coding in encoding.replace(" ", "").split(","):
        data = ENCODERS.get(coding.removeprefix("x-"), bytes)(data)
    name = f"{encoding.replace(',', '-').replace(' ', '')}.jpg"
    buckets[store].put(f"in/{name}", data, encoding)
    reply = await site.picture(f"{store}/{name}", resize="40x", format="webp")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "image/webp"), reply.body
    assert reply.picture.size == (40, 27)


@pytest.mark.parametrize("label", ["utf-8", "base64", "aws-chunked", "identity"])
async def test_a_label_of_an_object_means_plain_bytes(
    site: Site, buckets: Mapping[str, Bucket], store: str, label: str
) -> None:
    buckets[store].put(f"in/{label}.jpg", encoded.jpeg().data, label)
    reply = await site.picture(f"{store}/{label}.jpg", resize="40x")
    assert reply.status == 200, reply.body


async def test_bombs_in_buckets_are_too_large(site: Site, buckets: Mapping[str, Bucket], store: str) -> None:
    buckets[store].put("in/bomb.jpg", gzip.compress(b"\0" * 300_000_000, 1), "gzip")
    reply = await site.picture(f"{store}/bomb.jpg", resize="40x")
    told = f"'{store}/bomb.jpg' has more than 10,000,000 bytes, which is the limit: use a smaller file."
    assert (reply.status, reply.json["message"]) == (424, f"Source {told}")
    buckets[store].put("in/broken.jpg", gzip.compress(encoded.jpeg().data)[:-9], "gzip")
    reply = await site.picture(f"{store}/broken.jpg", resize="40x")
    told = f"Source '{store}/broken.jpg' ended before it was complete."
    assert (reply.status, reply.json["message"]) == (424, told)


async def test_an_object_is_read_once_for_all_sizes_at_a_time(
    site: Site, buckets: Mapping[str, Bucket]
) -> None:
    bucket = buckets["alibaba"]
    bucket.put("in/sizes.jpg", encoded.jpeg().data)
    asked = (site.picture("alibaba/sizes.jpg", resize=f"{size}x") for size in range(10, 34))
    assert {reply.status for reply in await asyncio.gather(*asked)} == {200}
    assert bucket.reads is not None
    assert bucket.reads("in/sizes.jpg") == 1


async def test_an_object_that_is_read_in_parts(site: Site, buckets: Mapping[str, Bucket], store: str) -> None:
    """The end of a part is not the start of the next."""
    pixels = np.random.default_rng(1).integers(0, 256, (1700, 1700, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=0)
    assert 2**23 < len(file.getvalue()) < LIMIT
    buckets[store].put("in/large.png", file.getvalue())
    reply = await site.picture(f"{store}/large.png", crop="1700x1700", format="png", lossless="true")
    assert reply.status == 200, reply.body
    assert np.array_equal(np.asarray(reply.picture.convert("RGB")), pixels)


async def test_a_part_ends_before_the_end_of_the_object(buckets: Mapping[str, Bucket], store: str) -> None:
    buckets[store].put("in/letters", b"abcdefgh")
    files, folder = open_filesystem(**buckets[store].origin)
    assert await asyncio.to_thread(read_object, files, f"{folder}/letters", 3, 5) == b"de"


@pytest.mark.parametrize(
    "path",
    ["/leading.jpg", "a//b.jpg", "trailing/", "both//in/ü %.jpg//", "a?b#c.jpg", "a[1]*.jpg", "a+b&c=d.jpg"],
)
async def test_keys_are_exact(site: Site, buckets: Mapping[str, Bucket], store: str, path: str) -> None:
    buckets[store].put(f"in/{path}", encoded.jpeg().data)
    reply = await site.picture(f"{store}/{path}", resize="40x", format="webp")
    assert reply.status == 200, reply.body
    assert (await site.picture(f"{store}/{path}x", resize="40x")).status == 404
    assert (await site.picture(f"{store}/{path}/", resize="40x")).status == 404


async def test_keys_of_a_whole_bucket_may_begin_with_a_slash(
    site: Site, buckets: Mapping[str, Bucket]
) -> None:
    buckets["s3"].put("/first.jpg", encoded.jpeg().data)
    reply = await site.picture("s3-whole//first.jpg", resize="40x")
    assert reply.status == 200, reply.body
    assert (await site.picture("s3-whole/first.jpg", resize="40x")).status == 404


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
    told = f"Source '{store}-denied/photo.jpg' cannot be read: the origin denies access."
    assert reply.json["message"] == told
    log = (site.service.state.parent / f"{site.service.state.name}.log").read_text()
    config = site.service.imgsvc("serve", "--print-config")
    for secret in (_SECRET, _WRONG_SECRET, _KEY, _WRONG_KEY, "PRIVATE KEY"):
        for text in (log, config, str(reply.headers), reply.body.decode()):
            assert secret not in text


@pytest.mark.parametrize("directive", ["no-store", "private, max-age=60"])
async def test_what_an_object_says_of_caches_stays(
    site: Site, buckets: Mapping[str, Bucket], store: str, directive: str
) -> None:
    scope = directive.partition(",")[0]
    buckets[store].put(f"in/{scope}.jpg", encoded.jpeg().data, cache=directive)
    url = site.signer.url(f"{store}/{scope}.jpg", resize="30x")
    for condition in ("", "*"):
        reply = await site.get(url, **({"If_None_Match": condition} if condition else {}))
        assert reply.status == (304 if condition else 200)
        assert reply.headers["Cache-Control"].partition(",")[0] == scope
    again = await site.get(url)
    assert again.headers["X-Svc-Cache"] == "miss"
