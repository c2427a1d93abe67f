"""A stand-in for Alibaba's object storage, strict about signatures and bodies, made from its documentation.

It verifies the header signatures of versions 1 and 4, the clock, and the digest of each body. What strangers
may read is up to the bucket.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import secrets
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

import attrs
from aiohttp import web

from tests.stores.servers.applications import serving

_CLOCK_SECONDS = 900
_KEPT = (
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
)
_SUBRESOURCES = frozenset({"acl", "bucketInfo", "objectMeta", "partNumber", "tagging", "uploadId", "uploads"})


class Refused(Exception):
    """A request that is refused, with the code for it."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(code)
        self.answer = web.Response(
            status=status,
            text=f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>",
            content_type="application/xml",
            headers={"x-oss-request-id": secrets.token_hex(12)},
        )


@attrs.frozen
class Stored:
    """An object, with the headers that it was sent with."""

    data: bytes = attrs.field(repr=False)
    headers: Mapping[str, str]
    modified: str = attrs.field(factory=lambda: formatdate(usegmt=True))

    def answer(self, request: web.Request) -> web.Response:
        etag = f'"{hashlib.md5(self.data).hexdigest().upper()}"'
        headers = {**self.headers, "ETag": etag, "Last-Modified": self.modified}
        part = request.http_range
        if part.start is None:
            return web.Response(body=self.data, headers=headers)
        start, end, _ = part.indices(len(self.data))
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(self.data)}"
        return web.Response(status=206, body=self.data[part], headers=headers)


@attrs.define
class Server:
    """A running stand-in: keys and their secrets; buckets, and whether strangers may read them.

    ``reads`` counts how often each object was read.
    """

    keys: Mapping[str, str] = attrs.field(repr=False)
    buckets: Mapping[str, bool]
    region: str
    url: str = ""
    objects: dict[tuple[str, str], Stored] = attrs.field(factory=dict)
    reads: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    uploads: dict[str, tuple[tuple[str, str], Mapping[str, str], dict[int, bytes]]] = attrs.field(
        factory=dict
    )

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        try:
            return self._answer(request, body)
        except Refused as refused:
            return refused.answer

    def _answer(self, request: web.Request, body: bytes) -> web.Response:
        path = unquote(request.raw_path.partition("?")[0])
        bucket, _, name = path.removeprefix("/").partition("/")
        signed = "Authorization" in request.headers
        if signed:
            self._verify(request, path)
        if bucket not in self.buckets:
            raise Refused(404, "NoSuchBucket", "The specified bucket does not exist.")
        if not signed and (request.method != "GET" or not self.buckets[bucket]):
            raise Refused(403, "AccessDenied", "You have no right to access this object.")
        digest = request.headers.get("Content-MD5")
        if digest is not None and digest != base64.b64encode(hashlib.md5(body).digest()).decode():
            raise Refused(400, "InvalidDigest", "The Content-MD5 you specified is not valid.")
        return self._act(request, (bucket, name), body)

    def _act(self, request: web.Request, key: tuple[str, str], body: bytes) -> web.Response:
        query = request.query
        match request.method, "uploads" in query, query.get("uploadId"):
            case "GET", False, None if not key[1]:
                return self._about(key[0]) if "bucketInfo" in query else self._list(key[0], query)
            case "GET" | "HEAD", False, None:
                if key not in self.objects:
                    raise Refused(404, "NoSuchKey", "The specified key does not exist.")
                self.reads[key] += request.method == "GET"
                return self.objects[key].answer(request)
            case "PUT", False, None:
                self.objects[key] = Stored(body, _kept(request.headers))
                return web.Response(headers={"ETag": _etag(body)})
            case "POST", True, None:
                upload = secrets.token_hex(16).upper()
                self.uploads[upload] = (key, _kept(request.headers), {})
                text = (
                    "<InitiateMultipartUploadResult><UploadId>{}</UploadId></InitiateMultipartUploadResult>"
                )
                return web.Response(text=text.format(upload), content_type="application/xml")
            case method, False, str(upload) if self.uploads.get(upload, (None,))[0] == key:
                return self._continue(method, upload, request, body)
            case _:
                raise Refused(404, "NoSuchUpload", "The specified upload does not exist.")

    def _about(self, bucket: str) -> web.Response:
        grant = "public-read" if self.buckets[bucket] else "private"
        facts = {
            "Name": bucket,
            "Location": f"oss-{self.region}",
            "CreationDate": "2026-01-01T00:00:00.000Z",
            "ExtranetEndpoint": self.url,
            "IntranetEndpoint": self.url,
            "StorageClass": "Standard",
            "AccessControlList": f"<Grant>{grant}</Grant>",
            "Owner": "<ID>1</ID><DisplayName>1</DisplayName>",
        }
        told = "".join(f"<{name}>{value}</{name}>" for name, value in facts.items())
        text = f"<BucketInfo><Bucket>{told}</Bucket></BucketInfo>"
        return web.Response(text=text, content_type="application/xml")

    def _list(self, bucket: str, query: Mapping[str, str]) -> web.Response:
        """A page of names after a marker; what lies below a delimiter is one common prefix."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        found: dict[str, Stored | None] = {}
        for (place, name), stored in sorted(self.objects.items()):
            if place == bucket and name.startswith(prefix):
                folder, split, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
                found.setdefault(f"{prefix}{folder}{split}" if split else name, None if split else stored)
        after = [name for name in found if name > query.get("marker", "")]
        page = after[: int(query.get("max-keys", 100))]
        parts = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if (stored := found[name]) is None
            else f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{_etag(stored.data)}</ETag><Type>Normal</Type><Size>{len(stored.data)}</Size>"
            "<StorageClass>Standard</StorageClass></Contents>"
            for name in page
        )
        more = len(page) < len(after)
        last = f"<NextMarker>{escape(page[-1])}</NextMarker>" if more else ""
        told = f"<IsTruncated>{str(more).lower()}</IsTruncated>{last}{parts}"
        text = f"<ListBucketResult>{told}</ListBucketResult>"
        return web.Response(text=text, content_type="application/xml")

    def _continue(self, method: str, upload: str, request: web.Request, body: bytes) -> web.Response:
        key, headers, parts = self.uploads[upload]
        match method:
            case "PUT":
                parts[int(request.query["partNumber"])] = body
                return web.Response(headers={"ETag": _etag(body)})
            case "DELETE":
                del self.uploads[upload]
                return web.Response(status=204)
            case "POST":
                named = {
                    int(part.findtext("PartNumber", "")): part.findtext("ETag", "")
                    for part in ElementTree.fromstring(body).iter("Part")
                }
                if named != {number: _etag(part) for number, part in parts.items()}:
                    raise Refused(
                        400, "InvalidPart", "One or more of the specified parts could not be found."
                    )
                if any(len(parts[number]) < 102_400 for number in sorted(parts)[:-1]):
                    raise Refused(400, "EntityTooSmall", "A part is smaller than the minimum.")
                self.objects[key] = Stored(b"".join(parts[number] for number in sorted(parts)), headers)
                del self.uploads[upload]
                return web.Response(text="<CompleteMultipartUploadResult/>", content_type="application/xml")
            case _:
                raise Refused(405, "MethodNotAllowed", "The specified method is not allowed.")

    def _verify(self, request: web.Request, path: str) -> None:
        given = request.headers["Authorization"]
        if given.startswith("OSS4-HMAC-SHA256 "):
            fields = dict(field.strip().split("=", 1) for field in given.partition(" ")[2].split(","))
            key, date, region, product, kind = fields["Credential"].split("/")
            secret = self._secret(key)
            stamp = request.headers.get("x-oss-date", "")
            _check_clock(datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC))
            if (date, region, product, kind) != (stamp[:8], self.region, "oss", "aliyun_v4_request"):
                raise Refused(400, "InvalidArgument", "Invalid signing date, region or product in the scope.")
            expected = _signature_4(request, path, secret, [date, region, product, kind], fields)
            found = fields["Signature"]
        else:
            key, _, found = given.removeprefix("OSS ").partition(":")
            secret = self._secret(key)
            _check_clock(parsedate_to_datetime(request.headers["Date"]))
            expected = _signature_1(request, path, secret)
        if not hmac.compare_digest(expected, found):
            message = "The request signature we calculated does not match the signature you provided."
            raise Refused(403, "SignatureDoesNotMatch", message)

    def _secret(self, key: str) -> str:
        if key not in self.keys:
            message = "The OSS Access Key Id you provided does not exist in our records."
            raise Refused(403, "InvalidAccessKeyId", message)
        return self.keys[key]


def _signature_4(
    request: web.Request, path: str, secret: str, scope: list[str], fields: Mapping[str, str]
) -> str:
    extra = [name for name in fields.get("AdditionalHeaders", "").split(";") if name]
    signed = sorted(
        (name.lower(), value.strip())
        for name, value in request.headers.items()
        if name.lower().startswith("x-oss-")
        or name.lower() in ("content-type", "content-md5")
        or name.lower() in extra
    )
    canonical = "\n".join(
        [
            request.method,
            quote(path, safe="/-_.~"),
            _canonical_query(request.raw_path.partition("?")[2]),
            "".join(f"{name}:{value}\n" for name, value in signed),
            ";".join(extra),
            request.headers["x-oss-content-sha256"],
        ]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["OSS4-HMAC-SHA256", request.headers["x-oss-date"], "/".join(scope), digest])
    key = f"aliyun_v4{secret}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _canonical_query(query: str) -> str:
    pairs = [
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    ]
    return "&".join(f"{name}={value}" if value else name for name, value in sorted(pairs))


def _signature_1(request: web.Request, path: str, secret: str) -> str:
    headers = request.headers
    own = sorted(
        (name.lower(), value) for name, value in headers.items() if name.lower().startswith("x-oss-")
    )
    query = parse_qsl(request.raw_path.partition("?")[2], keep_blank_values=True)
    named = sorted((name, value) for name, value in query if name in _SUBRESOURCES)
    resource = "&".join(f"{name}={value}" if value else name for name, value in named)
    text = "\n".join(
        [
            request.method,
            headers.get("Content-MD5", ""),
            headers.get("Content-Type", ""),
            headers["Date"],
            "".join(f"{name}:{value}\n" for name, value in own) + path + (f"?{resource}" if resource else ""),
        ]
    )
    return base64.b64encode(hmac.digest(secret.encode(), text.encode(), "sha1")).decode()


def _check_clock(sent: datetime) -> None:
    if abs(sent.timestamp() - time.time()) > _CLOCK_SECONDS:
        message = "The difference between the request time and the current time is too large."
        raise Refused(403, "RequestTimeTooSkewed", message)


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name.lower() in _KEPT or name.lower().startswith("x-oss-meta-")
    }


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest().upper()}"'


@contextlib.contextmanager
def server(*, keys: Mapping[str, str], buckets: Mapping[str, bool], region: str) -> Iterator[Server]:
    """A stand-in with these users and buckets."""
    made = Server(keys, buckets, region)
    with serving(lambda app: app.router.add_route("*", "/{path:.*}", made.handle)) as made.url:
        yield made
