"""Private names of dependencies that the batch uses: here and nowhere else, as in the core."""

from __future__ import annotations

from typing import Any


def place_of(filesystem: Any, link: str) -> tuple[dict[str, Any], str]:
    """Return the settings and the path that a class of fsspec reads from a link."""
    return filesystem._get_kwargs_from_urls(link), str(filesystem._strip_protocol(link))
