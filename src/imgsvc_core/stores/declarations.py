"""What a ``store`` of a request may say: one class for each provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from imgsvc_core.errors import Problem
from imgsvc_core.spec.declare import Operation, param, params
from imgsvc_core.spec.kinds import Boolean, Choice, Text
from imgsvc_core.spec.rules import AtLeastOne, NotTogether, Rule, Together
from imgsvc_core.stores.kinds import Headers, Name, ObjectPath, Pairs, Strings

_COMMON_HEADERS = ("Cache-Control", "Content-Type", "Content-Encoding")
_FULL_HEADERS = (*_COMMON_HEADERS, "Content-Language", "Content-Disposition")
_RESERVED = ("x-s3", "op-s3", "ol-s3", "table-s3")
_BUCKET = Name(
    # What ends like this leads to other services than those of buckets.
    rf"(?!.*--(?:{'|'.join(_RESERVED)})$)[A-Za-z0-9][A-Za-z0-9._-]{{1,253}}[A-Za-z0-9]",
    "name of 3 to 255 letters, digits, dots, hyphens and underscores, with a letter or digit at both ends "
    f"and without {', '.join(f'--{ending}' for ending in _RESERVED)} at its end",
)
_REGION = Name(
    # Regions with this ending are addresses inside of a provider's network. With what providers put before
    # it, a region is one label of a host's name, which has at most 63 characters.
    r"(?!(.*-)?internal$)(?=.{1,40}$)[a-z][a-z0-9]{1,11}(-[a-z0-9]{1,12}){0,5}",
    "name of a region of at most 40 small letters, digits and single hyphens, without internal at its end",
)
_TEXT = r"(?:[\x21-\x7e](?:[\x20-\x7e]{0,2046}[\x21-\x7e])?)?"  # servers drop spaces around it
_TAG = r"[\w .:/=+@-]"
_S3_PART_BYTES = 5 * 2**20  # the smallest that the protocol allows
_CANNED = ("private", "public-read", "public-read-write", "authenticated-read")

_ACCESS_KEY = Name(r"[\x21-\x7e]{1,256}", "string of 1 to 256 printable ASCII characters without spaces")


def _path() -> str:
    doc = "Name of the object; a folder where it ends in a slash; by default the result's name in the root."
    path: str = param(ObjectPath(), doc, default="")
    return path


def _metadata(
    names: str = r"[A-Za-z0-9_-]{1,128}", words: str = "letters, digits, hyphens and underscores"
) -> Pairs:
    expected = f"object of printable ASCII strings without spaces around them, with names of {words}"
    kind = Strings(expected, names, _TEXT, maximum=64, any_case=True)
    pairs: Pairs = param(kind, "Metadata of the object.", default=())
    return pairs


def _headers(*allowed: str) -> Pairs:
    pairs: Pairs = param(Headers(allowed), "HTTP headers that the object is served with.", default=())
    return pairs


def _secret(doc: str) -> str:
    text: str = param(_ACCESS_KEY, doc, secret=True)
    return text


@attrs.frozen
class OneKind(NotTogether):
    """Two kinds of credentials, of which one is to be given whole."""

    def problems(self, title: str, values: Mapping[str, Any]) -> Iterator[Problem]:
        found = [
            [name for name in side if values.get(name) is not None] for side in (self.first, self.second)
        ]
        if all(found):
            other = " and ".join(f"'{name}'" for name in found[1])
            message = f"{title} '{found[0][0]}' parameter cannot be used together with {other}; give one kind"
            yield Problem(found[0][0], message)
        else:
            yield from Together(self.second).problems(title, values)

    def schema(self) -> dict[str, Any]:
        return {"allOf": [super().schema(), Together(self.second).schema()]}


@attrs.frozen(kw_only=True)
class StoreSpec(Operation):
    """Where a result is to be stored, with which credentials and how.

    ``session`` names the parameters that a connection depends on; the others are an object's.
    ``credentials`` names those that a command may take from its environment.
    ``part_bytes`` is the size of the parts in which an object of more than two parts is sent.
    """

    key: ClassVar[str] = "store"
    title: ClassVar[str] = "Store"
    provider: ClassVar[str]
    extra: ClassVar[str]
    session: ClassVar[tuple[str, ...]]
    credentials: ClassVar[tuple[str, ...]]
    part_bytes: ClassVar[int | None] = None

    path: str = _path()

    def secrets(self) -> tuple[str, ...]:
        """The values that nobody may see."""
        found = [getattr(self, item.attribute) for item in params(type(self)).values() if item.secret]
        return tuple(value for value in found if value)


@attrs.frozen(kw_only=True)
class Aws(StoreSpec):
    """S3: buckets of Amazon Web Services."""

    provider: ClassVar[str] = "aws"
    extra: ClassVar[str] = "s3"
    session: ClassVar[tuple[str, ...]] = ("key", "secret", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key", "secret")
    part_bytes: ClassVar[int] = _S3_PART_BYTES

    key: str = _secret("Access key id.")  # type: ignore[misc]
    secret: str = _secret("Secret access key.")
    bucket: str = param(_BUCKET, "Destination bucket.")
    region: str = param(_REGION, "Region of the bucket.")
    acl: str = param(
        Choice((*_CANNED, "aws-exec-read", "bucket-owner-read", "bucket-owner-full-control")),
        "Canned access control list of the object.",
        default="public-read",
    )
    storage_class: str = param(
        Choice(
            (
                "standard",
                "reduced-redundancy",
                "standard-ia",
                "onezone-ia",
                "intelligent-tiering",
                "glacier",
                "deep-archive",
            )
        ),
        "Storage class of the object.",
        name="class",
        default="standard",
    )
    metadata: Pairs = _metadata()
    headers: Pairs = _headers("Expires", *_FULL_HEADERS)
    tags: Pairs = param(
        Strings(
            "object of at most 10 strings of letters, digits, spaces and .:/=+@_-",
            _TAG + "{1,128}",
            _TAG + "{0,256}",
            maximum=10,
        ),
        "Tags of the object.",
        default=(),
    )


@attrs.frozen(kw_only=True)
class Google(StoreSpec):
    """Buckets of Google Cloud Storage, by a keyfile of a service account or by developer keys."""

    provider: ClassVar[str] = "google"
    extra: ClassVar[str] = "google"
    session: ClassVar[tuple[str, ...]] = ("keyfile", "key", "secret")
    credentials: ClassVar[tuple[str, ...]] = ("keyfile", "key", "secret")
    part_bytes: ClassVar[int] = _S3_PART_BYTES
    rules: ClassVar[tuple[Rule, ...]] = (
        AtLeastOne(("keyfile", "key", "secret")),
        OneKind(("keyfile",), ("key", "secret")),
    )

    keyfile: str | None = param(Text(200), "Id of a keyfile that was uploaded.", default=None)
    key: str | None = param(  # type: ignore[assignment, misc]
        _ACCESS_KEY, "Developer access key.", default=None, secret=True
    )
    secret: str | None = param(_ACCESS_KEY, "Developer secret.", default=None, secret=True)
    bucket: str = param(_BUCKET, "Destination bucket.")
    acl: str = param(
        Choice(
            (
                "publicRead",
                "private",
                "projectPrivate",
                "authenticatedRead",
                "bucketOwnerRead",
                "bucketOwnerFullControl",
            )
        ),
        "Predefined access control list of the object.",
        default="publicRead",
    )
    metadata: Pairs = _metadata()
    headers: Pairs = _headers(*_FULL_HEADERS)


@attrs.frozen(kw_only=True)
class DigitalOcean(StoreSpec):
    """Spaces of DigitalOcean."""

    provider: ClassVar[str] = "digitalocean"
    extra: ClassVar[str] = "s3"
    session: ClassVar[tuple[str, ...]] = ("key", "secret", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key", "secret")
    part_bytes: ClassVar[int] = _S3_PART_BYTES

    key: str = _secret("Spaces key id.")  # type: ignore[misc]
    secret: str = _secret("Spaces secret.")
    bucket: str = param(_BUCKET, "Destination space.")
    region: str = param(_REGION, "Region of the space.")
    acl: str = param(Choice(_CANNED), "Canned access control list of the object.", default="public-read")
    metadata: Pairs = _metadata()
    headers: Pairs = _headers(*_COMMON_HEADERS, "Content-Disposition")


@attrs.frozen(kw_only=True)
class Alibaba(StoreSpec):
    """Buckets of Alibaba Cloud's Object Storage Service."""

    provider: ClassVar[str] = "alibaba"
    extra: ClassVar[str] = "alibaba"
    session: ClassVar[tuple[str, ...]] = ("key", "secret", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key", "secret")
    part_bytes: ClassVar[int] = 5 * 2**20

    key: str = _secret("Access key id.")  # type: ignore[misc]
    secret: str = _secret("Secret access key.")
    bucket: str = param(
        Name(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", "name of 3 to 63 small letters, digits and hyphens"),
        "Destination bucket.",
    )
    region: str = param(_REGION, "Region of the bucket.")
    metadata: Pairs = _metadata()
    headers: Pairs = _headers("Expires", *_FULL_HEADERS)


@attrs.frozen(kw_only=True)
class Rackspace(StoreSpec):
    """Containers of Rackspace's Cloud Files that are published through its CDN."""

    provider: ClassVar[str] = "rackspace"
    extra: ClassVar[str] = "rackspace"
    session: ClassVar[tuple[str, ...]] = ("username", "key", "region")
    credentials: ClassVar[tuple[str, ...]] = ("username", "key")

    username: str = param(Text(256), "User name of the account.")
    key: str = _secret("API key.")  # type: ignore[misc]
    container: str = param(
        Name(
            r"(?!\.{1,2}$)[^/\x00-\x1f\x7f]{1,256}",
            "name of 1 to 256 characters without slashes and control characters, and neither '.' nor '..'",
        ),
        "Destination container, enabled for the CDN.",
    )
    region: str = param(Choice(("iad", "dfw", "hkg", "syd")), "Region of the container.")
    secure: bool = param(Boolean(), "Whether the URL given back is one over TLS.", default=True)


@attrs.frozen(kw_only=True)
class Microsoft(StoreSpec):
    """Blob containers of Microsoft Azure."""

    provider: ClassVar[str] = "microsoft"
    extra: ClassVar[str] = "azure"
    session: ClassVar[tuple[str, ...]] = ("account", "key")
    credentials: ClassVar[tuple[str, ...]] = ("account", "key")
    part_bytes: ClassVar[int] = 4 * 2**20

    account: str = param(
        Name(r"[a-z0-9]{3,24}", "name of 3 to 24 small letters and digits"), "Storage account."
    )
    key: str = param(  # type: ignore[misc]
        Name(r"(?:[A-Za-z0-9+/]{4}){1,64}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", "key in Base64"),
        "Storage access key.",
        secret=True,
    )
    container: str = param(
        Name(
            r"\$root|\$web|[a-z0-9](?:-?[a-z0-9]){2,62}",
            "name of 3 to 63 small letters, digits and single hyphens",
        ),
        "Destination container.",
    )
    metadata: Pairs = _metadata(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "letters, digits and underscores")
    headers: Pairs = _headers(*_FULL_HEADERS)


@attrs.frozen(kw_only=True)
class Ibm(StoreSpec):
    """Buckets of IBM Cloud Object Storage."""

    provider: ClassVar[str] = "ibm"
    extra: ClassVar[str] = "s3"
    session: ClassVar[tuple[str, ...]] = ("key", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key",)
    part_bytes: ClassVar[int] = _S3_PART_BYTES

    key: str = _secret("API key.")  # type: ignore[misc]
    bucket: str = param(_BUCKET, "Destination bucket.")
    region: str = param(_REGION, "Region of the bucket.")
    acl: str = param(Choice(_CANNED), "Canned access control list of the object.", default="public-read")


PROVIDERS: dict[str, type[StoreSpec]] = {
    item.provider: item for item in (Aws, Google, DigitalOcean, Alibaba, Rackspace, Microsoft, Ibm)
}
"""The providers by name."""

ENDPOINTS = (*PROVIDERS, "google_token", "ibm_token")
"""Names of the addresses that others may replace."""
