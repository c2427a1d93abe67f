"""Kinds of settings, beside the kinds of parameters of requests."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import attrs

from imgsvc_core.spec.declaring import Matching
from imgsvc_http.settings.url_host import parse_url

NONE = "none"
"""The text that stands for `None`."""

_WEB = ("http", "https")
_HOST_NAME = re.compile(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?")


class Kind(Protocol):
    """What a setting accepts. The kinds of parameters of requests are such kinds too."""

    @property
    def expectation(self) -> str:
        """The words after "must be" in a message."""

    def parse(self, value: object) -> Any:
        """Return the value in its Python form; raise `ValueError` if it is not accepted."""

    def unparse(self, value: Any) -> Any:
        """Return the plain form of a parsed value: a string, number or boolean, or a list of them."""


class _Text:
    """Base of kinds whose parsed values are plain already."""

    def unparse(self, value: str) -> str:
        return value


@attrs.frozen
class FilePath:
    """Path of a file or folder, with ``~`` for the home folder. With ``optional``, empty is ``None``."""

    optional: bool = False

    @property
    def expectation(self) -> str:
        return "path of a file or folder" + (" or empty" if self.optional else "")

    def parse(self, value: object) -> Path | None:
        if self.optional and (value is None or value == ""):
            return None
        if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
            raise ValueError(value)
        try:
            return Path(value).expanduser()
        except RuntimeError as error:  # there is no home folder
            raise ValueError(value) from error

    def unparse(self, value: Path | None) -> str:
        return "" if value is None else str(value)


@attrs.frozen
class Url(_Text):
    """A URL with one of some schemes, or with any scheme if none is given. Names of folders may have spaces.

    It contains the text ``holding``. A ``bare`` one has no credentials, query and fragment. With ``optional``
    it may be empty.
    """

    schemes: tuple[str, ...] = ()
    optional: bool = False
    holding: str = ""
    bare: bool = False

    @property
    def expectation(self) -> str:
        heads = f" that begins with {' or '.join(f'{name}://' for name in self.schemes)}"
        held = f" and holds {self.holding}" if self.holding else ""
        bare = ", without credentials, query and fragment," if self.bare else ""
        return "URL" + (heads if self.schemes else "") + held + bare + (" or empty" if self.optional else "")

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not (value or self.optional) or re.search(r"[\x00-\x1f\x7f]", value):
            raise ValueError(value)
        scheme, colon, _ = value.partition("://")
        if value != value.strip() or (" " in value and (self.schemes or scheme in _WEB)):
            raise ValueError(value)
        if value and (not colon or (self.schemes and scheme not in self.schemes)):
            raise ValueError(value)
        if value and (self.holding not in value or (scheme in _WEB and not parse_url(value).host)):
            raise ValueError(value)
        if self.bare and ("@" in urlsplit(value).netloc or "?" in value or "#" in value):
            raise ValueError(value)
        urlsplit(value)
        return value


@attrs.frozen
class Replacement(_Text):
    """``name=URL`` with one of some names."""

    names: tuple[str, ...]
    url: Url

    @property
    def expectation(self) -> str:
        return f"name={self.url.expectation.rstrip(',')}, whose name is one of {', '.join(self.names)}"

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(value)
        name, _, url = value.partition("=")
        if name not in self.names:
            raise ValueError(value)
        self.url.parse(url)
        return value


@attrs.frozen
class Network:
    """An address or a network in CIDR notation, as an `ipaddress` network."""

    expectation = "address or network such as 10.0.0.0/8"

    def parse(self, value: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        if isinstance(value, ipaddress.IPv4Network | ipaddress.IPv6Network):
            return value
        if not isinstance(value, str):
            raise ValueError(value)
        return ipaddress.ip_network(value)

    def unparse(self, value: object) -> str:
        return str(value)


@attrs.frozen
class Host(_Text):
    """A host name, or an address or network in CIDR notation, as text."""

    expectation = "host name, address or network such as 10.0.0.0/8"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > 253:
            raise ValueError(value)
        # A name does not end with a number, so a mistyped address is not accepted as a name.
        if not _HOST_NAME.fullmatch(value) or value.rstrip(".").rpartition(".")[2].isdigit():
            ipaddress.ip_network(value, strict=False)
        return value


@attrs.frozen
class Many:
    """A list of values of a kind, as a tuple. In a variable or flag: separated by commas, or a JSON array."""

    kind: Kind
    most: int | None = None

    @property
    def expectation(self) -> str:
        length = "" if self.most is None else f" of at most {self.most} items"
        return f"list{length} whose items are each {self.kind.expectation}"

    def parse(self, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or (self.most is not None and len(value) > self.most):
            raise ValueError(value)
        return tuple(self.kind.parse(item) for item in value)

    def unparse(self, value: Iterable[Any]) -> list[Any]:
        return [self.kind.unparse(item) for item in value]


@attrs.frozen
class Maybe:
    """A value of a kind, or ``"none"`` for `None`."""

    kind: Kind

    @property
    def expectation(self) -> str:
        return f'{self.kind.expectation} or "{NONE}"'

    def parse(self, value: object) -> Any:
        return None if value is None or value == NONE else self.kind.parse(value)

    def unparse(self, value: Any) -> Any:
        return NONE if value is None else self.kind.unparse(value)


BEGINNINGS = Many(
    Matching(r"https?://[^/\s]+/\S*", "URL with a slash after its host, such as https://*.example.org/")
)
"""Beginnings of URLs, in which each ``*`` stands for a part of the host or of a segment of the path."""
