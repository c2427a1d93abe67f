"""URLs of other services, turned into requests.

A dialect is a plug-in: an entry point of the group ``imgsvc.dialects`` that names a class. The arguments of
the class are the settings of the dialect, such as its keys. Its instances read paths in two steps:

1. `Dialect.parse` checks the signature of a path and reads it into a `ForeignUrl`, without the picture.
2. `ForeignUrl.spec` returns the request for a picture, whose size, format and alpha decide many options.

libvips is not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import attrs

from imgsvc_core.errors import DialectError, Problem, SpecError
from imgsvc_core.info import ImageInfo
from imgsvc_core.jsontext import shown
from imgsvc_core.spec import Spec
from imgsvc_core.urls import Source

GROUP = "imgsvc.dialects"
"""The group of entry points that name dialects."""


@attrs.frozen(kw_only=True)
class ForeignDelivery:
    """How the picture of a foreign URL is delivered.

    ``filename`` has no suffix. ``max_age`` is the number of seconds for which caches keep the picture.
    """

    filename: str | None = None
    download: bool = False
    expires: int | None = None
    max_age: int | None = None
    version: None = None


class ForeignUrl(Protocol):
    """What a URL of another service asks for."""

    @property
    def source(self) -> Source:
        """The picture to fetch."""

    @property
    def signed(self) -> bool:
        """Whether the URL has a signature that was checked."""

    @property
    def negotiated(self) -> bool:
        """Whether the format of the result depends on the client."""

    @property
    def delivery(self) -> ForeignDelivery:
        """How the result is delivered."""

    @property
    def key(self) -> str:
        """A text that is the same for URLs that ask for the same of a picture: the key of a cache."""

    def check_expiry(self, now: float) -> None:
        """Raise `DialectError` if the URL is not valid at a Unix time."""

    def spec(self, info: ImageInfo) -> Spec | None:
        """Return the request for a picture with these facts, or `None` to deliver its file unchanged.

        Raises:
            DialectError: the URL asks for something that is not possible; the message names the option.
        """


class Dialect(Protocol):
    """A dialect with its settings."""

    def parse(self, path: str, accept: str = "") -> ForeignUrl:
        """Return what a path asks for.

        Args:
            path: the path as it was sent, from the slash before the signature, without a query.
            accept: the header ``Accept`` of the client, for dialects that choose the format by it.

        Raises:
            DialectError: the path cannot be read, or its signature is wrong.
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
    >>> dialect.parse("/unsafe/300x200/pics.example/a.jpg").source
    UrlSource(url='http://pics.example/a.jpg')
    """
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP, name=name)
    if not found:
        message = f"A dialect must be one of {', '.join(names())}, got {shown(name)}"
        raise SpecError([Problem("dialects", message)])
    return cast("Callable[..., Dialect]", next(iter(found)).load())


__all__ = ["GROUP", "Dialect", "DialectError", "ForeignDelivery", "ForeignUrl", "load", "names"]
