"""Objects in buckets that are replaced by one put, and keep what their owner stored with them.

A ``Content-Encoding`` is not kept, because it is not that of the new bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from imgsvc_core.targets import put_object, store_of

Info = Mapping[str, Any]
"""What a store tells of an object, by its own names."""

_OF_S3 = (
    *("CacheControl", "ContentDisposition", "ContentLanguage", "Expires", "Metadata", "StorageClass"),
    *("WebsiteRedirectLocation", "ServerSideEncryption", "SSEKMSKeyId"),
)
"""What ``HeadObject`` tells and ``PutObject`` takes."""

_OF_GOOGLE = {
    "cache_control": "cacheControl",
    "content_disposition": "contentDisposition",
    "content_language": "contentLanguage",
    "custom_time": "customTime",
}
_OF_AZURE = ("cache_control", "content_disposition", "content_language")
_OF_ALIBABA = ("cache-control", "content-disposition", "content-language", "expires", "x-oss-storage-class")
_METADATA_OF_ALIBABA = "x-oss-meta-"


def replace_object(fs: Any, path: str, data: bytes, media_type: str, before: Info) -> None:
    """Put an object in the place of one whose facts are ``before``."""
    store = store_of(fs)
    if store == "az":
        _put_into_azure(fs, path, data, media_type, before)
    else:
        kept = _KEPT.get(store or "")
        put_object(fs, path, data, media_type, **({} if kept is None else kept(before, media_type)))


def _kept_by_s3(before: Info, media_type: str) -> dict[str, Any]:
    return {name: before[name] for name in _OF_S3 if before.get(name)}


def _kept_by_google(before: Info, media_type: str) -> dict[str, Any]:
    headers = {name: before[own] for name, own in _OF_GOOGLE.items() if before.get(own)}
    return {"metadata": before.get("metadata"), "fixed_key_metadata": headers}


def _kept_by_alibaba(before: Info, media_type: str) -> dict[str, Any]:
    headers: Mapping[str, str] = before["headers"]
    kept = {
        name: value
        for name, value in headers.items()
        if name.lower() in _OF_ALIBABA or name.lower().startswith(_METADATA_OF_ALIBABA)
    }
    return {"headers": {**kept, "Content-Type": media_type}}


_KEPT: Mapping[str, Callable[[Info, str], dict[str, Any]]] = {
    "s3": _kept_by_s3,
    "gs": _kept_by_google,
    "oss": _kept_by_alibaba,
}


def _put_into_azure(fs: Any, path: str, data: bytes, media_type: str, before: Info) -> None:
    """Put a blob by the client of a file system, which has metadata of its own for what it writes."""
    from azure.storage.blob import ContentSettings
    from fsspec.asyn import sync

    told = before["content_settings"]
    headers = {name: getattr(told, name) for name in _OF_AZURE}
    container, _, blob = path.lstrip("/").partition("/")

    async def put() -> None:
        async with fs.service_client.get_blob_client(container, blob) as client:
            await client.upload_blob(
                data,
                overwrite=True,
                metadata=before["metadata"],
                content_settings=ContentSettings(content_type=media_type, **headers),
            )

    sync(fs.loop, put)
