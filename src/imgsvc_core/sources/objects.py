"""Objects in buckets: their facts, and their bytes as they are stored.

File systems of fsspec change keys that end in a slash or hold ``?`` or ``#``, and do not tell the
``Content-Encoding``. Some of them decode the bytes that they read, even if these are only a part. So this
module reads objects under their exact keys, by the clients of those file systems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from imgsvc_core._runtime.private_names import call_s3, get_raw_from_google, get_raw_from_oss, info_of_oss
from imgsvc_core._runtime.records import frozen

Info = Mapping[str, Any]
"""Facts under the names that fsspec and the provider use, including ``type``, ``size`` and ``encoding``."""


def object_info(fs: Any, path: str) -> Info:
    """Return the facts of an object or file.

    Args:
        fs: its file system.
        path: the bucket and the key, or the path of the file.

    Raises:
        FileNotFoundError: it does not exist.
    """
    provider = _provider_of(fs)
    if provider is None:
        return {"encoding": "", "cache_control": "", **fs.info(path)}
    return {"type": "file", **provider.info(fs, *_split(path))}


def read_object(fs: Any, path: str, start: int, end: int) -> bytes:
    """Return the stored bytes of an object or file from ``start`` to before ``end``."""
    provider = _provider_of(fs)
    if provider is None:
        return bytes(fs.cat_file(path, start=start, end=end))
    return bytes(provider.read(fs, *_split(path), start, end))


def is_object_store(fs: Any) -> bool:
    """Return True if a file system is a bucket whose objects have exact keys and a ``Content-Encoding``."""
    return _provider_of(fs) is not None


@frozen
class _Provider:
    """Two functions that read objects of a provider. Both take the file system, the bucket and the key."""

    info: Callable[[Any, str, str], Info]
    read: Callable[[Any, str, str, int, int], bytes]


def _provider_of(fs: Any) -> _Provider | None:
    protocols = [fs.protocol] if isinstance(fs.protocol, str) else fs.protocol
    return next((_PROVIDERS[name] for name in protocols if name in _PROVIDERS), None)


def _split(path: str) -> tuple[str, str]:
    bucket, _, key = path.lstrip("/").partition("/")
    if not key:
        raise FileNotFoundError(path)
    return bucket, key


def _in_loop(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs a coroutine function in the event loop of its file system."""

    def run(fs: Any, *arguments: Any) -> Any:
        from fsspec.asyn import sync

        return sync(fs.loop, work, fs, *arguments)

    return run


def _s3_info(fs: Any, bucket: str, key: str) -> Info:
    found = fs.call_s3("head_object", Bucket=bucket, Key=key)
    headers = {"encoding": found.get("ContentEncoding", ""), "cache_control": found.get("CacheControl", "")}
    return {**found, "size": found["ContentLength"], **headers}


@_in_loop
async def _s3_read(fs: Any, bucket: str, key: str, start: int, end: int) -> bytes:
    found = await call_s3(fs, "get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}")
    async with found["Body"] as body:
        return bytes(await body.read())


def _google_info(fs: Any, bucket: str, key: str) -> Info:
    try:
        found = fs.call("GET", "b/{}/o/{}", bucket, key, json_out=True)
    except OSError as error:
        if str(error).startswith("Forbidden"):  # the error has no class of its own
            raise PermissionError(str(error)) from error
        raise
    headers = {"encoding": found.get("contentEncoding", ""), "cache_control": found.get("cacheControl", "")}
    return {**found, "size": int(found.get("size") or 0), **headers}  # JSON has it as a text


@_in_loop
async def _azure_info(fs: Any, bucket: str, key: str) -> Info:
    from azure.core.exceptions import ResourceNotFoundError

    async with fs.service_client.get_blob_client(bucket, key) as blob:
        try:
            found = await blob.get_blob_properties()
        except ResourceNotFoundError as error:
            raise FileNotFoundError(key) from error
    told = found.content_settings
    headers = {"encoding": told.content_encoding or "", "cache_control": told.cache_control or ""}
    return {**found, "size": found.size, **headers}


@_in_loop
async def _azure_read(fs: Any, bucket: str, key: str, start: int, end: int) -> bytes:
    async with fs.service_client.get_blob_client(bucket, key) as blob:
        stream = await blob.download_blob(offset=start, length=end - start, decompress=False)
        return bytes(await stream.readall())


_S3 = _Provider(_s3_info, _s3_read)
_GOOGLE = _Provider(_google_info, _in_loop(get_raw_from_google))
_AZURE = _Provider(_azure_info, _azure_read)
_PROVIDERS = {
    "s3": _S3,
    "gs": _GOOGLE,
    "gcs": _GOOGLE,
    "abfs": _AZURE,
    "az": _AZURE,
    "oss": _Provider(info_of_oss, get_raw_from_oss),
}
