"""The names of the service's own headers, whose beginning is the setting ``server.header_prefix``."""

from __future__ import annotations

_PREFIX = "{prefix}"

BINARY = f"{_PREFIX}-Binary"
"""Of a request: whether the picture itself is to be the answer."""
METADATA = f"{_PREFIX}-Metadata"
META = f"{_PREFIX}-Meta"
"""Of an answer that is a picture: its metadata, under both names."""


def with_prefix(text: str, prefix: str) -> str:
    """A name, or a text that holds one, as the settings have it."""
    return text.replace(_PREFIX, prefix)
