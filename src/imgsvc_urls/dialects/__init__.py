"""URLs of other services, turned into requests.

A dialect is a plug-in: an entry point of the group ``imgsvc.dialects`` that names a class. The arguments of
the class are the settings of the dialect, such as its keys. Its instances read URLs in two steps:

1. `Dialect.parse` checks the signature of a request and reads it into a `ForeignUrl`, without the picture.
2. `ForeignUrl.spec` returns the request for a picture, whose size, format and alpha decide many options.
   `imgsvc_urls.dialects.translating` calls it, after it has looked for the border of a picture to be trimmed.

libvips is not needed, except for trimming.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol, cast
from urllib.parse import parse_qsl

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import ImgsvcError, SourceUnreachable, invalid
from imgsvc_core.formats.info import ImageInfo
from imgsvc_core.plan.geometry import Box, Size
from imgsvc_core.spec import Spec, Trim
from imgsvc_urls import AnySource
from imgsvc_urls.dialects.wildcards import climbs, url_pattern
from imgsvc_urls.errors import DialectError, SourceRefused

GROUP = "imgsvc.dialects"
"""The group of entry points that name dialects."""

_OF_ALL = ("source", "signed", "delivery", "pictures", "facts")
"""Fields that all URLs have. They do not describe the picture."""


@attrs.frozen
class ForeignRequest:
    """A request for a picture, as a client sends it to another service.

    Args:
        target: path and query as they were sent, from the slash before the path on.
        headers: the headers of the client. `header` reads them.

    >>> request = ForeignRequest("/image?url=%2Fa.jpg&w=64", {"Accept": "image/webp"})
    >>> request.path, request.query, request.parameters
    ('/image', 'url=%2Fa.jpg&w=64', (('url', '/a.jpg'), ('w', '64')))
    >>> request.header("accept"), request.used_headers
    ('image/webp', ('accept',))
    """

    target: str
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    _used: dict[str, None] = attrs.field(factory=dict, init=False, repr=False, eq=False)

    @property
    def path(self) -> str:
        """The path as it was sent."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query as it was sent, without its question mark."""
        return self.target.partition("?")[2]

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The names and values of the query, decoded."""
        return tuple(parse_qsl(self.query, keep_blank_values=True, errors="surrogateescape"))

    def header(self, name: str) -> str:
        """Return all lines of a header, or an empty text, and remember that the answer depends on it."""
        self._used[name] = None
        return ", ".join(line for key, line in self.headers.items() if key.lower() == name.lower())

    @property
    def used_headers(self) -> tuple[str, ...]:
        """The names of the headers that were read. ``Vary`` tells them."""
        return tuple(self._used)


@attrs.frozen
class Document:
    """An answer that is no picture, such as facts about one."""

    body: bytes
    media_type: str = "application/json"


@attrs.frozen(kw_only=True)
class ForeignDelivery:
    """How the picture of a foreign URL is delivered.

    ``filename`` has no suffix. ``max_age`` is the number of seconds for which caches keep the picture, unless
    ``source_age`` is true and its source says for how long. ``expires`` is the Unix time until which the URL
    is valid. A new ``version`` makes the picture of a source that is asked for anew.
    """

    filename: str | None = None
    download: bool = False
    expires: int | None = None
    max_age: int | None = None
    source_age: bool | None = None
    version: str | None = None


@attrs.frozen(kw_only=True)
class ForeignUrl(ABC):
    """What a URL of another service asks for. A dialect adds fields for what its URLs ask of a picture.

    All that the request says about the picture, headers too, must be in these fields: caches tell URLs apart
    by them.

    Args:
        source: the picture to fetch.
        signed: whether the URL has a signature that was checked.
        allowed: whether settings of the dialect say where sources come from, and allow this one.
        delivery: how the result is delivered.
        pictures: the ids of the watermark pictures whose facts `spec` needs.
        facts: these facts by id, which `imgsvc_urls.dialects.translating` adds.
    """

    expired_status: ClassVar[int] = 410
    """The HTTP status of a URL that has expired."""

    unreachable_status: ClassVar[int] = 502
    """The status if the server of a source cannot be reached."""

    late_status: ClassVar[int] = 504
    """The status if a source does not come in time."""

    unusable_status: ClassVar[int] = 422
    """The status if a source is no picture, or too large."""

    source: AnySource
    signed: bool
    allowed: bool = False
    delivery: ForeignDelivery = ForeignDelivery()
    pictures: tuple[str, ...] = ()
    facts: Mapping[str, ImageInfo] = attrs.field(factory=dict, eq=False, repr=False)

    @property
    def key(self) -> str:
        """A text that is the same for URLs that ask for the same of a picture: the key of a cache."""
        own = (getattr(self, item.name) for item in attrs.fields(type(self)) if item.name not in _OF_ALL)
        return hashlib.sha256(repr((type(self).__qualname__, *own)).encode()).hexdigest()

    def check_expiry(self, now: float) -> None:
        """Raise `DialectError` if the URL is not valid at a Unix time."""
        if self.delivery.expires is not None and now > self.delivery.expires:
            raise DialectError("The URL has expired: ask for a new one.", status=self.expired_status)

    @property
    def upright(self) -> bool:
        """Return True if pictures are turned by their EXIF orientation before all else."""
        return True

    def judged(self, info: ImageInfo) -> Spec | None:
        """Return the request whose result is searched for transparent pixels before `spec` is called, if any.

        Pictures that it lays over the result are left out.
        """
        return None

    def trim(self, info: ImageInfo) -> Trim | None:
        """Return what is cut away before all that the request asks for, so that `spec` knows what is left."""
        return None

    def failure_status(self, error: ImgsvcError) -> int:
        """Return the HTTP status with which the other service answers if the source cannot be used.

        The status of the source's own server wins, if it sent one.

        Args:
            error: a `SourceError`, `SourceTooLarge` or `ImageTooLarge`.
        """
        if not isinstance(error, SourceUnreachable) or error.failure == "incomplete":
            return self.unusable_status
        if isinstance(error, SourceRefused) and error.status >= 400:
            return error.status
        return self.late_status if error.failure == "timed_out" else self.unreachable_status

    def of_part(self, box: Box, size: Size) -> ForeignUrl:
        """Return the URL that asks for the same of the part of a picture of a size that a trim leaves."""
        return self

    @abstractmethod
    def spec(self, info: ImageInfo) -> Spec | Document | None:
        """Return the request for a picture with these facts, or `None` to deliver its file unchanged.

        A document is delivered in place of a picture.

        If the picture is trimmed, its size is what is left. If it is not turned, its orientation is 1.

        Raises:
            DialectError: the URL asks for something that is not possible; the message names the option.
        """


class Dialect(Protocol):
    """A dialect with its settings.

    If it has a ``health_path``, the service answers 200 there for as long as it lives, as the other one does.
    """

    def parse(self, request: ForeignRequest) -> ForeignUrl:
        """Return what a request asks for.

        Raises:
            DialectError: the URL cannot be read, or its signature is wrong.
        """


def names() -> tuple[str, ...]:
    """Return the names of the installed dialects."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load(name: str) -> Callable[..., Dialect]:
    """Return the class of a dialect; its arguments are the settings of the dialect.

    Raises:
        SpecError: no such dialect is installed.

    >>> dialect = load("thumbor")(unsafe=True)
    >>> dialect.parse(ForeignRequest("/unsafe/300x200/pics.example/a.jpg")).source
    UrlSource(url='http://pics.example/a.jpg')
    """
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP, name=name)
    if not found:
        raise invalid("dialects", f"A dialect must be one of {', '.join(names())}, got {shown(name)}")
    return cast("Callable[..., Dialect]", next(iter(found)).load())


__all__ = [
    "GROUP",
    "Dialect",
    "DialectError",
    "Document",
    "ForeignDelivery",
    "ForeignRequest",
    "ForeignUrl",
    "climbs",
    "load",
    "names",
    "url_pattern",
]
