"""Temporary storage of results: any place that fsspec can write to, with names that tell when they expire."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import attrs
from aiohttp import web

from imgsvc_core.codecs.table import FORMATS
from imgsvc_core.errors import Problem, SpecError
from imgsvc_http.answering.refusals import Refusal, gone, not_found
from imgsvc_http.storage.bulkhead import Patience

_NAME = re.compile(r"([0-9a-z]{6,7})-([A-Za-z0-9_-]{32})(\.[a-z0-9]{2,5})")
_RANGE = re.compile(r"(?i:bytes)=(?:([0-9]{1,30})-([0-9]{1,30})?|-([0-9]{1,30}))")
_PROTOCOL = re.compile(r"[a-z][a-z0-9+_-]{0,30}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PIECE = 1 << 18
_TYPES = {row.suffix: row.media_type for row in FORMATS.values()}
_SUFFIXES = {row.media_type: row.suffix for row in reversed(list(FORMATS.values()))}


@attrs.frozen(kw_only=True)
class Stored:
    """A picture in temporary storage."""

    name: str
    expires_at: datetime


class TemporaryStorage:
    """Keeps pictures for a while under unguessable names.

    A name begins with the second at which it expires, so that every node knows without asking, and a sweeper
    needs nothing but the names. A picture's name is told only when all of it is there.

    Args:
        url: an fsspec URL of a folder.
        lifetime_seconds: how long pictures stay.
        seconds: how long a call of the place may take.

    Raises:
        SpecError: fsspec has nothing for such a URL.
    """

    def __init__(self, url: str, lifetime_seconds: float, *, seconds: float = 60) -> None:
        _check_protocols(url)
        self._patience = Patience(seconds)
        self._url = url
        self._lifetime = lifetime_seconds
        self._opened: tuple[Any, str] | None = None

    async def put(self, data: bytes, media_type: str, now: datetime) -> Stored:
        """Keep a picture."""
        expires = int(now.timestamp() + self._lifetime) + 1
        name = f"{_base36(expires)}-{secrets.token_urlsafe(24)}{_SUFFIXES[media_type]}"
        await self._patience.call(self._write, name, data)
        return Stored(name=name, expires_at=datetime.fromtimestamp(expires, UTC))

    async def size(self, name: str) -> int:
        """The size of a picture in bytes; `FileNotFoundError` where there is none."""
        return await self._patience.call(lambda: int(self._fs.size(self._path(name))))

    async def read(self, name: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from ``start`` up to ``end``, in pieces."""
        while start < end:
            stop = min(start + _PIECE, end)
            piece = await self._patience.call(self._fs.cat_file, self._path(name), start=start, end=stop)
            yield bytes(piece)
            start = stop

    async def delete(self, name: str) -> None:
        """Forget a picture before its time."""
        await self._patience.call(self._remove, name)

    async def sweep(self, now: datetime) -> int:
        """Delete what has expired; how many there were.

        Raises:
            ExceptionGroup: some cannot be deleted; all others are.
        """
        return await self._patience.call(self._sweep, now)

    @property
    def _fs(self) -> Any:
        return self._open()[0]

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            import fsspec

            # A cached listing would hide what other nodes have stored since.
            fs, root = fsspec.core.url_to_fs(self._url, use_listings_cache=False)
            fs.makedirs(root, exist_ok=True)
            self._opened = fs, root
        return self._opened

    def _path(self, name: str) -> str:
        return f"{self._open()[1].rstrip('/')}/{name}"

    def _write(self, name: str, data: bytes) -> None:
        try:
            self._fs.pipe_file(self._path(name), data)
        except BaseException:
            self._remove(name)
            raise

    def _remove(self, name: str) -> bool:
        try:
            self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            return False
        return True

    def _sweep(self, now: datetime) -> int:
        fs, root = self._open()
        try:
            names = [str(path).rpartition("/")[2] for path in fs.ls(root, detail=False)]
        except FileNotFoundError:  # buckets have no empty folders
            return 0
        swept, failures = 0, []
        for name in names:
            if _has_expired(name, now):
                try:
                    swept += self._remove(name)
                except OSError as error:
                    failures.append(error)
        if failures:
            raise ExceptionGroup("some expired pictures cannot be deleted", failures)
        return swept


def _check_protocols(url: str) -> None:
    import fsspec

    for part in url.split("::"):
        protocol = part.partition("://")[0]
        try:
            fsspec.get_filesystem_class(protocol)
        except (ValueError, ImportError) as error:
            shown = f"'{protocol}://'" if _PROTOCOL.fullmatch(protocol) else "another one"  # maybe a secret
            advice = f": {error}" if isinstance(error, ImportError) else ""
            message = f"Setting 'temporary.url' must be a URL that fsspec can open, got {shown}{advice}"
            raise SpecError([Problem("temporary.url", message)]) from error


def expiry_of(name: str) -> datetime | None:
    """When the picture of a name expires; ``None`` for what is no name."""
    match = _NAME.fullmatch(name)
    return datetime.fromtimestamp(int(match[1], 36), UTC) if match else None


async def serve(
    request: web.Request, storage: TemporaryStorage, name: str, now: datetime
) -> web.StreamResponse:
    """Answer a picture, or a range of its bytes.

    Raises a `Refusal`: 404 for unknown names, 410 for expired ones, 412 for other versions, 416 for ranges
    that lie outside.
    """
    expires = expiry_of(name)
    if expires is None or name.rpartition(".")[2] not in {suffix[1:] for suffix in _TYPES}:
        raise not_found("image")
    if expires <= now:
        raise gone("image")
    try:
        size = await storage.size(name)
    except FileNotFoundError:
        raise not_found("image") from None
    etag = f'"{name.rpartition(".")[0]}"'
    headers = {
        "Content-Type": _TYPES["." + name.rpartition(".")[2]],
        "Content-Disposition": "inline",
        "Cache-Control": f"private, max-age={max(0, int((expires - now).total_seconds()))}",
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    if not _matches(request.headers.get("If-Match", "*"), etag, weakly=False):
        raise Refusal(
            HTTPStatus.PRECONDITION_FAILED,
            "precondition_failed",
            f"The If-Match header must name the ETag of the image, {etag}, got "
            f"'{request.headers['If-Match'][:80]}': leave it out, or send that one.",
            headers={"ETag": etag},
        )
    if _matches(request.headers.get("If-None-Match", ""), etag, weakly=True):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    start, end = _range(request, size, etag)
    partial = (start, end) != (0, size)
    if partial:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    response = web.StreamResponse(
        status=HTTPStatus.PARTIAL_CONTENT if partial else HTTPStatus.OK, headers=headers
    )
    response.content_length = end - start
    await response.prepare(request)
    if request.method != "HEAD":
        async for piece in storage.read(name, start, end):
            await response.write(piece)
    await response.write_eof()
    return response


def _range(request: web.Request, size: int, etag: str) -> tuple[int, int]:
    """Start and end of the bytes that are wanted; all, where the range is of another kind or version.

    Ranges are for GET only.
    """
    asked = _RANGE.fullmatch(request.headers.get("Range", "")) if request.method == "GET" else None
    if asked is None or request.headers.get("If-Range", etag) != etag:
        return 0, size
    first, last, suffix = asked.groups()
    start = int(first) if first else max(0, size - int(suffix))
    end = min(int(last) + 1 if last else size, size)
    if start >= end:
        raise Refusal(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
            "range_not_satisfiable",
            f"The range lies outside of the {size:,} bytes of the image.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return start, end


def _matches(known: str, etag: str, *, weakly: bool) -> bool:
    """Whether an ETag is among those of a header, which may be marked as weak where it is no matter."""
    items = [item.strip() for item in known.split(",")]
    return items == ["*"] or etag in [item.removeprefix("W/") if weakly else item for item in items]


def _has_expired(name: str, now: datetime) -> bool:
    expires = expiry_of(name)
    return expires is not None and expires <= now


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits
