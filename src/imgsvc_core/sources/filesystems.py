"""File systems at fsspec URLs."""

from __future__ import annotations

from typing import Any

_GOOGLE = ("gs://", "gcs://")


def open_filesystem(url: str, **options: Any) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    For Google Cloud Storage, fsspec would take the class that asks each bucket for its kind over gRPC. That
    stalls for many seconds if the server answers only HTTP.

    Raises:
        ImportError: a package is missing.
    """
    if url.startswith(_GOOGLE):
        from gcsfs.core import GCSFileSystem

        return GCSFileSystem(**options), url.partition("://")[2].rstrip("/")
    import fsspec

    found: tuple[Any, str] = fsspec.core.url_to_fs(url, **options)
    return found
