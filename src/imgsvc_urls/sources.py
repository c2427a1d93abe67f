"""Sources in URLs of pictures: the URL of a picture, or a path below a named origin."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import quote, unquote

import attrs

from imgsvc_core._runtime.jsontext import shown
from imgsvc_core.errors import SpecError, invalid
from imgsvc_core.spec.options import from_base64
from imgsvc_urls.delivery import URL_OPTIONS

PLAIN, BASE64 = "plain", "b64"

ORIGIN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""The pattern of names of origins. Names of options, ``plain`` and ``b64`` are taken."""

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
"""The pattern of what URLs begin with, and paths in origins do not."""

_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_PATH = "source"
_TAKEN = URL_OPTIONS | {PLAIN, BASE64}
_ORIGIN_NAMES = "names of origins are lower case, and not those of options"


@attrs.frozen
class UrlSource:
    """A source by its URL."""

    url: str


@attrs.frozen
class OriginSource:
    """A source by its path below an origin; both are plain text, not percent-encoded."""

    origin: str
    path: str


@attrs.frozen
class InlineSource:
    """A source by its bytes. Dialects draw it if a URL describes a picture instead of naming a file."""

    data: bytes


Source: TypeAlias = UrlSource | OriginSource
AnySource: TypeAlias = Source | InlineSource


def is_origin_name(name: str) -> bool:
    """Return True if an origin can have this name."""
    return bool(ORIGIN_NAME.fullmatch(name)) and name not in _TAKEN


def parse_source(segments: Sequence[str]) -> Source:
    """Return the source of the last segments of a path, which are still percent-encoded.

    Raises:
        SpecError: they are no source.
    """
    head, rest = segments[0] if segments else "", "/".join(segments[1:])
    if head == PLAIN:
        return UrlSource(_checked(decoded(rest)))
    if head == BASE64:
        return UrlSource(_checked(_from_base64(rest)))
    if not is_origin_name(head):
        expected = f"must be {PLAIN}/URL, {BASE64}/URL in base64url, or the name of an origin and a path"
        raise _problem(expected, f"got {shown(head)}; {_ORIGIN_NAMES}")
    if "%2f" in rest.lower():
        raise _problem(f"must have plain slashes below the origin '{head}'", f"got {shown(rest)}")
    return _in_origin(head, decoded(rest))


def source_of(text: str) -> Source:
    """Return the source that a text names: a URL, or an origin and a path below it.

    Raises:
        SpecError: it is neither.

    >>> source_of("photos/2026/shoe.jpg")
    OriginSource(origin='photos', path='2026/shoe.jpg')
    """
    if SCHEME.match(text):
        return UrlSource(_checked(text))
    origin, _, path = text.partition("/")
    if not is_origin_name(origin):
        expected = "must be a URL, or the name of an origin and a path"
        raise _problem(expected, f"got {shown(text)}; {_ORIGIN_NAMES}")
    return _in_origin(origin, path)


def write_source(source: Source, *, in_base64: bool = False) -> str:
    """Return the segments of a source. ``in_base64`` writes URLs in base64url."""
    match source:
        case OriginSource():
            return f"{source.origin}/{quote(source.path, safe='/')}"
        case UrlSource() if in_base64:
            return f"{BASE64}/{base64.urlsafe_b64encode(source.url.encode()).rstrip(b'=').decode('ascii')}"
        case UrlSource():
            return f"{PLAIN}/{quote(source.url, safe='')}"


def decoded(text: str) -> str:
    """Return a text without its percent-encoding.

    Raises:
        SpecError: it is not UTF-8.
    """
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise invalid("", "The URL must be percent-encoded UTF-8", f"got {shown(text)}") from None


def _from_base64(text: str) -> str:
    try:
        return from_base64(text).decode()
    except ValueError:
        raise _problem(f"must be base64url of a URL in UTF-8 after {BASE64}/", f"got {shown(text)}") from None


def _checked(url: str) -> str:
    """Return the URL of a source. Its scheme and its host are checked by whoever fetches it."""
    if not SCHEME.match(url):
        twice = "; it is percent-encoded twice" if SCHEME.match(unquote(url)) else ""
        raise _problem("must be a URL such as https://example.org/a.jpg", f"got {shown(url)}{twice}")
    if _NOT_TEXT.search(url):
        raise _problem("must be a URL of Unicode text without control characters", f"got {shown(url)}")
    return url


def _in_origin(origin: str, path: str) -> OriginSource:
    if not path or _leaves_its_folder(path) or _NOT_TEXT.search(path):
        raise _problem(
            f"must be a path below the origin '{origin}' without '.', '..', backslashes and control "
            "characters",
            f"got {shown(path)}",
        )
    return OriginSource(origin, path)


def _leaves_its_folder(path: str) -> bool:
    """Return True if a path may name something outside its folder, also for servers that decode it again."""
    return _has_dots(path) or ("%" in path and _has_dots(unquote(path)))


def _has_dots(path: str) -> bool:
    parts = path.split("/")
    return "\\" in path or "." in parts or ".." in parts


def _problem(expected: str, got: str) -> SpecError:
    return invalid(_PATH, f"The source of the URL {expected}", got)
