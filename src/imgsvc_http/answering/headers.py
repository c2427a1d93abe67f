"""The names of the service's own headers, and the headers that every response has."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from aiohttp import web


@attrs.frozen
class HeaderNames:
    """The names of the service's own headers, which begin with the setting ``server.header_prefix``."""

    prefix: str

    @property
    def binary(self) -> str:
        """In a request: whether the response is to be the picture itself."""
        return f"{self.prefix}-Binary"

    @property
    def cache(self) -> str:
        """In a response that is a picture of a URL: if the cache had it."""
        return f"{self.prefix}-Cache"

    @property
    def metadata(self) -> str:
        """In a response that is a picture: its metadata."""
        return f"{self.prefix}-Metadata"

    @property
    def meta(self) -> str:
        """The same under its other name."""
        return f"{self.prefix}-Meta"


def set_common_headers(response: web.StreamResponse, request_id: str | None, rate: Mapping[str, str]) -> None:
    """Set the headers that every response has."""
    response.headers["Server"] = "imgsvc"
    if request_id is not None:
        response.headers["X-Request-Id"] = request_id
    for name, value in rate.items():
        response.headers.setdefault(name, value)  # a refusal tells the rate that was exceeded
