"""The private names of dependencies that the batch uses. No other module of the batch uses any."""

from __future__ import annotations

from typing import Any


def place_of(filesystem: Any, link: str) -> tuple[dict[str, Any], str]:
    """Return the settings and the path that a class of fsspec reads from a link."""
    return filesystem._get_kwargs_from_urls(link), str(filesystem._strip_protocol(link))
