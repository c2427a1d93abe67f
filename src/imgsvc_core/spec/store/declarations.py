"""The ``store`` of a request: one class for each provider."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from imgsvc_core._runtime.records import frozen
from imgsvc_core.errors import Problem
from imgsvc_core.spec.declare import Accepts, Operation, Parameters, declared, param, params
from imgsvc_core.spec.kinds import Matching, Text
from imgsvc_core.spec.rules import AtLeastOne, NotTogether, Rule, absent, given, missing
from imgsvc_core.spec.store.parameter_types import Headers, ObjectPath, Pairs, Strings

_COMMON_HEADERS = ("Cache-Control", "Content-Type", "Content-Encoding")
_FULL_HEADERS = (*_COMMON_HEADERS, "Content-Language", "Content-Disposition")
_RESERVED = ("x-s3", "op-s3", "ol-s3", "table-s3")
_BUCKET = Matching(
    # Names with such an ending lead to services other than buckets.
    rf"(?!.*--(?:{'|'.join(_RESERVED)})$)[A-Za-z0-9][A-Za-z0-9._-]{{1,253}}[A-Za-z0-9]",
    "name of 3 to 255 letters, digits, dots, hyphens and underscores, with a letter or digit at both ends "
    f"and without {', '.join(f'--{ending}' for ending in _RESERVED)} at its end",
)
_REGION = Matching(
    # Regions with this ending are addresses inside of a provider's network. Providers put a text before the
    # region; both together are one label of a host name, which has at most 63 characters.
    r"(?!(.*-)?internal$)(?=.{1,40}$)[a-z][a-z0-9]{1,11}(-[a-z0-9]{1,12}){0,5}",
    "name of a region of at most 40 lowercase letters, digits and single hyphens, not ending in internal",
)
_TEXT = r"(?:[\x21-\x7e](?:[\x20-\x7e]{0,2046}[\x21-\x7e])?)?"  # servers drop spaces around it
_TAG = r"[\w .:/=+@-]"
_S3_PART_BYTES = 5 * 2**20  # the smallest that the protocol allows
_CannedAcl = Literal["private", "public-read", "public-read-write", "authenticated-read"]
_StringMap = Accepts[Pairs, Pairs | Mapping[str, str]]

_ACCESS_KEY = Matching(r"[\x21-\x7e]{1,256}", "string of 1 to 256 printable ASCII characters without spaces")


def _metadata(
    names: str = r"[A-Za-z0-9_-]{1,128}", words: str = "letters, digits, hyphens and underscores"
) -> Any:
    expected = f"object of printable ASCII strings without spaces around them, with names of {words}"
    kind = Strings(expected, names, _TEXT, maximum=64, any_case=True)
    return param("Metadata of the object.", kind, default=())


def _headers(*allowed: str) -> Any:
    return param("HTTP headers that the object is served with.", Headers(allowed), default=())


@frozen
class OneKind(NotTogether):
    """Two kinds of credentials. One of them must be given completely; the first has one parameter."""

    def problems(self, operation: type[Parameters], values: Mapping[str, Any]) -> Iterator[Problem]:
        found = [
            [name for name in side if values.get(name) is not None] for side in (self.first, self.second)
        ]
        if all(found):
            other = " and ".join(f"'{name}'" for name in found[1])
            message = f"{operation.subject(found[0][0])} cannot be used together with {other}; give one kind"
            yield Problem(found[0][0], message)
        for name in self.second if found[1] and not found[0] else ():
            if name not in found[1]:
                yield missing(operation, name, f"together with '{found[1][0]}'")

    def schema(self) -> dict[str, Any]:
        return {"allOf": [super().schema(), {"if": absent(*self.second), "else": given(*self.second)}]}


@declared
class StoreSpec(Operation):
    """The destination of a result in a store, with credentials and settings.

    ``session`` names the parameters of the connection; the others belong to the object. ``credentials``
    names the parameters that a command may take from its environment. ``part_bytes`` is the size of the
    parts in which an object of more than two parts is sent.

    A parameter ``key`` hides the name of the operation, so type checkers are told to ignore it.
    """

    key: ClassVar[str] = "store"
    title: ClassVar[str] = "Store"
    confidential: ClassVar[bool] = True
    provider: ClassVar[str]
    extra: ClassVar[str]
    session: ClassVar[tuple[str, ...]]
    credentials: ClassVar[tuple[str, ...]]
    part_bytes: ClassVar[int | None] = None

    path: str = param(
        "Name of the object; a folder if it ends in a slash; by default the result's name in the root.",
        ObjectPath(),
        default="",
    )

    def __init_subclass__(cls) -> None:
        """Leave the classes of providers the title and the key of stores."""

    def secrets(self) -> tuple[str, ...]:
        """Return the values that must stay secret."""
        found = [getattr(self, item.attribute) for item in params(type(self)).values() if item.secret]
        return tuple(value for value in found if value)


@declared
class Aws(StoreSpec):
    """S3: buckets of Amazon Web Services."""

    provider: ClassVar[str] = "aws"
    extra: ClassVar[str] = "s3"
    session: ClassVar[tuple[str, ...]] = ("key", "secret", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key", "secret")
    part_bytes: ClassVar[int] = _S3_PART_BYTES

    key: str = param("Access key id.", _ACCESS_KEY, secret=True)  # type: ignore[misc]
    secret: str = param("Secret access key.", _ACCESS_KEY, secret=True)
    bucket: str = param("Destination bucket.", _BUCKET)
    region: str = param("Region of the bucket.", _REGION)
    acl: Literal[_CannedAcl, "aws-exec-read", "bucket-owner-read", "bucket-owner-full-control"] = param(
        "Canned access control list of the object.", default="public-read"
    )
    storage_class: Literal[
        "standard",
        "reduced-redundancy",
        "standard-ia",
        "onezone-ia",
        "intelligent-tiering",
        "glacier",
        "deep-archive",
    ] = param("Storage class of the object.", name="class", default="standard")
    metadata: _StringMap = _metadata()
    headers: _StringMap = _headers("Expires", *_FULL_HEADERS)
    tags: _StringMap = param(
        "Tags of the object.",
        Strings(
            "object of at most 10 strings of letters, digits, spaces and .:/=+@_-",
            _TAG + "{1,128}",
            _TAG + "{0,256}",
            maximum=10,
        ),
        default=(),
    )


@declared
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

    keyfile: str | None = param("Id of an uploaded keyfile.", Text(200), default=None)
    key: str | None = param(  # type: ignore[assignment, misc]
        "Developer access key.", _ACCESS_KEY, default=None, secret=True
    )
    secret: str | None = param("Developer secret.", _ACCESS_KEY, default=None, secret=True)
    bucket: str = param("Destination bucket.", _BUCKET)
    acl: Literal[
        "publicRead",
        "private",
        "projectPrivate",
        "authenticatedRead",
        "bucketOwnerRead",
        "bucketOwnerFullControl",
    ] = param("Predefined access control list of the object.", default="publicRead")
    metadata: _StringMap = _metadata()
    headers: _StringMap = _headers(*_FULL_HEADERS)


@declared
class DigitalOcean(StoreSpec):
    """Spaces of DigitalOcean."""

    provider: ClassVar[str] = "digitalocean"
    extra: ClassVar[str] = "s3"
    session: ClassVar[tuple[str, ...]] = ("key", "secret", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key", "secret")
    part_bytes: ClassVar[int] = _S3_PART_BYTES

    key: str = param("Spaces key id.", _ACCESS_KEY, secret=True)  # type: ignore[misc]
    secret: str = param("Spaces secret.", _ACCESS_KEY, secret=True)
    bucket: str = param("Destination space.", _BUCKET)
    region: str = param("Region of the space.", _REGION)
    acl: _CannedAcl = param("Canned access control list of the object.", default="public-read")
    metadata: _StringMap = _metadata()
    headers: _StringMap = _headers(*_COMMON_HEADERS, "Content-Disposition")


@declared
class Alibaba(StoreSpec):
    """Buckets of Alibaba Cloud's Object Storage Service."""

    provider: ClassVar[str] = "alibaba"
    extra: ClassVar[str] = "alibaba"
    session: ClassVar[tuple[str, ...]] = ("key", "secret", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key", "secret")
    part_bytes: ClassVar[int] = 5 * 2**20

    key: str = param("Access key id.", _ACCESS_KEY, secret=True)  # type: ignore[misc]
    secret: str = param("Secret access key.", _ACCESS_KEY, secret=True)
    bucket: str = param(
        "Destination bucket.",
        Matching(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", "name of 3 to 63 lowercase letters, digits and hyphens"),
    )
    region: str = param("Region of the bucket.", _REGION)
    metadata: _StringMap = _metadata()
    headers: _StringMap = _headers("Expires", *_FULL_HEADERS)


@declared
class Rackspace(StoreSpec):
    """Containers of Rackspace's Cloud Files that are published through its CDN."""

    provider: ClassVar[str] = "rackspace"
    extra: ClassVar[str] = "rackspace"
    session: ClassVar[tuple[str, ...]] = ("username", "key", "region")
    credentials: ClassVar[tuple[str, ...]] = ("username", "key")

    username: str = param("User name of the account.", Text(256))
    key: str = param("API key.", _ACCESS_KEY, secret=True)  # type: ignore[misc]
    container: str = param(
        "Destination container, enabled for the CDN.",
        Matching(
            r"(?!\.{1,2}$)[^/\x00-\x1f\x7f]{1,256}",
            "name of 1 to 256 characters without slashes and control characters, and neither '.' nor '..'",
        ),
    )
    region: Literal["iad", "dfw", "hkg", "syd"] = param("Region of the container.")
    secure: bool = param("Whether the returned URL uses TLS.", default=True)


@declared
class Microsoft(StoreSpec):
    """Blob containers of Microsoft Azure."""

    provider: ClassVar[str] = "microsoft"
    extra: ClassVar[str] = "azure"
    session: ClassVar[tuple[str, ...]] = ("account", "key")
    credentials: ClassVar[tuple[str, ...]] = ("account", "key")
    part_bytes: ClassVar[int] = 4 * 2**20

    account: str = param(
        "Storage account.", Matching(r"[a-z0-9]{3,24}", "name of 3 to 24 lowercase letters and digits")
    )
    key: str = param(  # type: ignore[misc]
        "Storage access key.",
        Matching(r"(?:[A-Za-z0-9+/]{4}){1,64}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", "key in Base64"),
        secret=True,
    )
    container: str = param(
        "Destination container.",
        Matching(
            r"\$root|\$web|[a-z0-9](?:-?[a-z0-9]){2,62}",
            "name of 3 to 63 lowercase letters, digits and single hyphens",
        ),
    )
    metadata: _StringMap = _metadata(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "letters, digits and underscores")
    headers: _StringMap = _headers(*_FULL_HEADERS)


@declared
class Ibm(StoreSpec):
    """Buckets of IBM Cloud Object Storage."""

    provider: ClassVar[str] = "ibm"
    extra: ClassVar[str] = "s3"
    session: ClassVar[tuple[str, ...]] = ("key", "region")
    credentials: ClassVar[tuple[str, ...]] = ("key",)
    part_bytes: ClassVar[int] = _S3_PART_BYTES

    key: str = param("API key.", _ACCESS_KEY, secret=True)  # type: ignore[misc]
    bucket: str = param("Destination bucket.", _BUCKET)
    region: str = param("Region of the bucket.", _REGION)
    acl: _CannedAcl = param("Canned access control list of the object.", default="public-read")


PROVIDERS: dict[str, type[StoreSpec]] = {
    item.provider: item for item in (Aws, Google, DigitalOcean, Alibaba, Rackspace, Microsoft, Ibm)
}
"""The providers by name."""

ENDPOINTS = (*PROVIDERS, "google_token", "ibm_token")
"""Names of the addresses that others may replace."""
