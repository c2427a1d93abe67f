"""Temporary storage of results: a folder at any fsspec URL, with names that tell when they expire."""

from __future__ import annotations

import base64
import mmap
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

import attrs
import fsspec

from imgsvc_core import FORMATS
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_http.storage.folder import Folder, remove

_NAME = re.compile(r"([0-9a-z]{6,7})-([A-Za-z0-9_-]{32})(\.[a-z0-9]{2,5})")
_PROTOCOL = re.compile(r"[a-z][a-z0-9+_-]{0,30}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_CHUNK_BYTES = 1 << 18
_MEDIA_TYPES = {row.suffix: row.media_type for row in FORMATS.values()}
SUFFIXES = {row.media_type: row.suffix for row in reversed(list(FORMATS.values()))}
"""The suffixes of names by media type."""


@attrs.frozen
class Stored:
    """A picture in temporary storage."""

    name: str
    expires_at: datetime
    media_type: str


@attrs.frozen
class LocalTarget:
    """Where to write a picture whose type is not known yet: its name and its path without their suffix."""

    stem: str
    expires_at: datetime
    path: str

    def stored(self, media_type: str) -> Stored:
        """Return the picture that was written."""
        return Stored(f"{self.stem}{SUFFIXES[media_type]}", self.expires_at, media_type)


class TemporaryStorage:
    """Keeps pictures for a while under names that cannot be guessed.

    A name begins with the second at which it expires. So every node knows that without asking, and deleting
    expired pictures takes nothing but their names. A name is told when the whole picture is stored.

    Args:
        url: the fsspec URL of a folder.
        lifetime_seconds: how long pictures stay.
        seconds: how long a call of the file system may take.

    Raises:
        SpecError: fsspec cannot open such a URL.
    """

    def __init__(self, url: str, lifetime_seconds: float, *, seconds: float = 60) -> None:
        check_protocols(url, "temporary.url")
        self._folder = Folder(url, seconds)
        self._lifetime = lifetime_seconds
        self._mapped: WeakValueDictionary[str, mmap.mmap] = WeakValueDictionary()

    async def local_target(self, now: datetime) -> LocalTarget | None:
        """Return where to write a picture of any type, or None if the folder is not on this machine.

        A process that has the picture already writes it there faster than `put` does.
        """
        folder = await self._folder.local_path()
        if folder is None:
            return None
        stem, expires = self._new_name(now)
        return LocalTarget(stem, expires, f"{folder}/{stem}")

    async def put(self, data: bytes, media_type: str, now: datetime) -> Stored:
        """Keep a picture."""
        stem, expires = self._new_name(now)
        name = f"{stem}{SUFFIXES[media_type]}"
        await self._folder.call(_write, name, data)
        return Stored(name, expires, media_type)

    def _new_name(self, now: datetime) -> tuple[str, datetime]:
        """Return a name without its suffix, and when it expires."""
        expires = int(now.timestamp() + self._lifetime) + 1
        return (
            f"{_base36(expires)}-{base64.urlsafe_b64encode(os.urandom(24)).decode()}",
            datetime.fromtimestamp(expires, UTC),
        )

    async def mapped(self, name: str) -> memoryview | None:
        """Return a picture in memory, or None if the folder is not on this machine.

        There is one copy for all who read it, which the system shares with the file.

        Raises:
            FileNotFoundError: it is not there.
        """
        folder = await self._folder.local_path()
        if folder is None:
            return None
        found = self._mapped.get(name)
        if found is None:
            found = self._mapped[name] = await self._folder.call(_map, name)
        return memoryview(found)

    async def size(self, name: str) -> int:
        """Return the bytes of a picture; `FileNotFoundError` if it is not there."""
        return await self._folder.call(lambda fs, root: int(fs.size(f"{root}/{name}")))

    async def read(self, name: str, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes from ``start`` up to ``end``, in chunks."""
        while start < end:
            stop = min(start + _CHUNK_BYTES, end)
            yield await self._folder.call(_read, name, start, stop)
            start = stop

    async def sweep(self, now: datetime) -> int:
        """Delete expired pictures. Return their number.

        Raises:
            ExceptionGroup: some cannot be deleted; all others are.
        """
        return await self._folder.call(_sweep, await self._folder.names(), now)


def stored_of(name: str) -> Stored | None:
    """Return expiry and media type of a picture by its name; None for names of other files."""
    match = _NAME.fullmatch(name)
    if match is None or match[3] not in _MEDIA_TYPES:
        return None
    return Stored(name, datetime.fromtimestamp(int(match[1], 36), UTC), _MEDIA_TYPES[match[3]])


def check_protocols(url: str, setting: str) -> None:
    """Raise `SpecError` with the name of a setting if fsspec cannot open such a URL."""
    for part in url.split("::"):
        protocol = part.partition("://")[0]
        try:
            fsspec.get_filesystem_class(protocol)
        except (ValueError, ImportError) as error:
            shown = f"'{protocol}://'" if _PROTOCOL.fullmatch(protocol) else "another one"  # maybe a secret
            advice = f": {error}" if isinstance(error, ImportError) else ""
            expected = f"must be a URL that fsspec can open, got {shown}{advice}"
            raise wrong_setting(setting, expected) from error


def _write(fs: Any, root: str, name: str, data: bytes) -> None:
    try:
        fs.pipe_file(f"{root}/{name}", data)
    except BaseException:
        remove(fs, root, name)
        raise


def _map(_: Any, root: str, name: str) -> mmap.mmap:
    with open(f"{root}/{name}", "rb") as file:
        if not os.fstat(file.fileno()).st_size:  # which a power failure has left of it
            raise FileNotFoundError(name)
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def _read(fs: Any, root: str, name: str, start: int, end: int) -> bytes:
    return bytes(fs.cat_file(f"{root}/{name}", start=start, end=end))


def _sweep(fs: Any, root: str, names: list[str], now: datetime) -> int:
    swept, failures = 0, []
    for name in names:
        stored = stored_of(name)
        if stored is not None and stored.expires_at <= now:
            try:
                swept += remove(fs, root, name)
            except OSError as error:
                failures.append(error)
    if failures:
        raise ExceptionGroup("some expired pictures cannot be deleted", failures)
    return swept


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits
