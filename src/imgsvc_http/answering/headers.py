"""The names of the service's own headers, and the headers that every response has."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class HeaderNames:
    """The names of the service's own headers, which begin with the setting ``server.header_prefix``.

    Attributes:
        binary: in a request: whether the response is to be the picture itself.
        cache: in a response that is a picture of a URL: if the cache had it.
        metadata: in a response that is a picture: its metadata.
        meta: the same under its other name.
    """

    prefix: str
    binary: str = attrs.field(init=False, default=attrs.Factory(lambda own: f"{own.prefix}-Binary", True))
    cache: str = attrs.field(init=False, default=attrs.Factory(lambda own: f"{own.prefix}-Cache", True))
    metadata: str = attrs.field(init=False, default=attrs.Factory(lambda own: f"{own.prefix}-Metadata", True))
    meta: str = attrs.field(init=False, default=attrs.Factory(lambda own: f"{own.prefix}-Meta", True))


def common_headers(request_id: str, rate: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that every response has. A refusal may tell another rate, which was exceeded."""
    return {**rate, "Server": "imgsvc", "X-Request-Id": request_id}
