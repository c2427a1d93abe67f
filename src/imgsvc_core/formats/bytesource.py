"""The bytes of a source image, in memory or in a file, readable many times without copying."""

from __future__ import annotations

import io
import mmap
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imgsvc_core.errors import (
    EmptySource,
    MachineFailed,
    SourceUnreachable,
    lacks_handles,
    machine_failure,
    os_reason,
)

if TYPE_CHECKING:
    import pyvips
    from typing_extensions import Buffer

_HEAD = 1 << 15  # first bytes of a file, read once and kept for all readers of the header


class ByteSource:
    """Random access to encoded bytes: ``read``, ``open`` for Python libraries, ``vips`` for libvips.

    A path stays a path, so that a decoder streams from the file and memory does not grow with its size. The
    file is opened once for all reads and for the first decoder. libvips gets a fresh connection each time,
    which keeps its operation cache from serving old pictures.
    """

    __slots__ = ("_at_start", "_data", "_descriptor", "_head", "_path", "name", "size")

    def __init__(self, origin: Buffer | Path, *, name: str = "") -> None:
        self._descriptor: int | None = None
        self._at_start: list[int] = []  # the open file, until a decoder moves its position
        if isinstance(origin, Path):
            self._path: Path | None = origin
            self._data: memoryview | None = None
            self._head = b""
            self.name = name or origin.name
            self.size = _file_size(origin)
        else:
            self._path = None
            self._data = memoryview(origin).cast("B")
            self.name = name
            self.size = len(self._data)
        if self.size == 0:
            raise EmptySource(f"Source '{self.name or 'bytes'}' is empty; expected an encoded image.")

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """Return up to ``length`` bytes from ``start``, or all bytes from there if ``length`` is None."""
        end = None if length is None else start + length
        if self._data is not None:
            return bytes(self._data[start:end])
        if end is not None and end <= _HEAD:
            self._head = self._head or self._read(0, _HEAD)
            return self._head[start:end]
        return self._read(start, length)

    def _read(self, start: int, length: int | None) -> bytes:
        if self._descriptor is None:
            self._descriptor = self._opened()
            self._at_start.append(self._descriptor)
        left = max(0, self.size - start)
        wanted, data = left if length is None else min(length, left), b""
        # The kernel gives at most 2 GiB at once.
        while missing := wanted - len(data):
            piece = os.pread(self._descriptor, missing, start + len(data))
            if not piece:
                break
            data += piece
        return data

    def _opened(self) -> int:
        assert self._path is not None
        try:
            return os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise _unreachable(self._path, error) from error

    def _connection(self) -> int:
        """Return a descriptor of the start of the file. The caller closes it."""
        try:
            return os.dup(self._at_start.pop())
        except IndexError:
            return self._opened()

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def open(self) -> io.BytesIO | io.BufferedReader:
        """Open a new seekable binary file over the bytes. The caller closes it."""
        if self._data is not None:
            return io.BytesIO(self._data)
        assert self._path is not None
        return open(self._path, "rb", opener=lambda *_: self._connection())

    def vips(self) -> pyvips.Source:
        """Return a new libvips source over the bytes.

        Raises:
            SourceUnreachable: the file cannot be opened any more.
        """
        import pyvips

        if self._data is not None:
            return pyvips.Source.new_from_memory(self._data)
        descriptor = self._connection()  # given a path, libvips would open the file again for each pass
        try:
            return pyvips.Source.new_from_descriptor(descriptor)
        finally:
            os.close(descriptor)

    def buffer(self) -> Any:
        """Return all bytes in memory. Bytes that are in memory already are not copied."""
        return self._data if self._data is not None else self.read()

    def editable(self) -> bytearray | mmap.mmap:
        """Return all bytes in writable memory. Writing does not change the source.

        If the source is a file, only the written parts are copied.
        """
        if self._data is not None:
            return bytearray(self._data)
        with self.open() as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def sha256(self) -> str:
        """Return the hexadecimal SHA-256 digest of the bytes."""
        import hashlib  # loads OpenSSL

        if self._data is not None:
            return hashlib.sha256(self._data).hexdigest()
        with self.open() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _file_size(path: Path) -> int:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise _unreachable(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise SourceUnreachable(f"Source '{path}' is a folder; expected an image file.")
    return status.st_size


def _unreachable(path: Path, error: OSError | ValueError) -> SourceUnreachable | MachineFailed:
    if lacks_handles(error) and (failure := machine_failure(getattr(error, "errno", None))):
        return failure
    return SourceUnreachable(f"Source '{path}' cannot be read: {os_reason(error)}.")
