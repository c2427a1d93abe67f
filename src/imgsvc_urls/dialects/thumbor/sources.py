"""Where the images of URLs come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs

from imgsvc_core.spec.kinds import Kind
from imgsvc_urls.dialects.building import refusing
from imgsvc_urls.errors import DialectError
from imgsvc_urls.sources import Source, UrlSource, source_of

_STORED = re.compile(r"([0-9a-f]{32})(?:/.*)?", re.DOTALL)


@attrs.frozen
class RegularExpression(Kind):
    """A regular expression, as text."""

    expectation = "regular expression"

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(value)
        try:
            return re.compile(value).pattern
        except re.error as error:
            raise ValueError(value) from error

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "regex"}


def find_source(image: str, *, base_url: str, stored: str, allowed: Sequence[str]) -> Source:
    """Return where an image comes from.

    Args:
        image: the image as the URL names it.
        base_url: what stands before images that do not begin with http.
        stored: what stands before ids of stored images, or nothing if none are stored.
        allowed: regular expressions of hosts, or of URLs; of other URLs no image may come if there are any.

    Raises:
        DialectError: no image can or may come from there.
    """
    with refusing():
        if stored and (found := _STORED.fullmatch(image)):
            return source_of(stored + found[1])
        source = source_of(image if image.startswith("http") else base_url + image)
    if allowed and isinstance(source, UrlSource) and not _is_allowed(source.url, allowed):
        raise DialectError("The source of the URL is none of the allowed sources.")
    return source


def _is_allowed(url: str, patterns: Sequence[str]) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:  # such as of http://[/
        return False
    return any(
        re.match(pattern, url) if "://" in pattern else re.fullmatch(pattern, host) for pattern in patterns
    )
