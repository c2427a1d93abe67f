"""The private names of dependencies that the batch uses. No other module of the batch uses any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def place_of(filesystem: Any, link: str) -> tuple[dict[str, Any], str]:
    """Return the settings and the path that a class of fsspec reads from a link."""
    return filesystem._get_kwargs_from_urls(link), str(filesystem._strip_protocol(link))


def list_oss(filesystem: Any, root: str, start: str) -> Iterator[dict[str, Any]]:
    """Yield, page by page, the facts of objects below a folder of a bucket of Alibaba whose names begin so.

    ossfs's own listings give no ETag.
    """
    bucket, _, folder = root.strip("/").partition("/")
    prefix = f"{folder}/" if folder else ""
    marker, more = "", True
    while more:
        page = filesystem._call_oss(
            "list_objects", prefix + start, marker=marker, max_keys=1000, bucket=bucket
        )
        for found in page.object_list:
            yield {"name": f"{root}/{found.key.removeprefix(prefix)}", "size": found.size, "ETag": found.etag}
        marker, more = page.next_marker, page.is_truncated
