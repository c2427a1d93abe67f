"""The destination of encoded bytes: memory, or the file of the caller."""

from __future__ import annotations

import errno
import io
from typing import BinaryIO

import pyvips

from imgsvc_core.errors import TargetError, os_reason

_HEAD = 64


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all bytes, even to an unbuffered file, which may take them piece by piece.

    Raises `OSError` if the file takes nothing, as a full one that does not block.
    """
    rest: bytes | memoryview = data
    while rest:
        taken = file.write(rest)
        if taken is None and not isinstance(file, io.RawIOBase):
            return  # no file, but an object with a method "write" that tells nothing
        if not taken:
            raise BlockingIOError(errno.EAGAIN, "it takes no more bytes now, and does not wait")
        rest = memoryview(rest)[taken:]


class Sink:
    """Takes encoded bytes and counts them. ``head`` are the first ones, where encoders say what they made.

    libvips streams into a file as it encodes, so that a large result is never in memory as a whole.
    """

    def __init__(self, target: BinaryIO | None = None, *, digest: bool = False) -> None:
        self._target = target
        self._failure: TargetError | None = None
        self._inserted = 0, b""
        self.data = b""
        self.head = b""
        self.size = 0
        self.notes: list[str] = []
        self._digest = None
        if digest:
            import hashlib  # loads OpenSSL

            self._digest = hashlib.sha256()

    @property
    def in_memory(self) -> bool:
        """True if the bytes are in ``data``."""
        return self._target is None

    @property
    def sha256(self) -> str | None:
        """The SHA-256 digest of the bytes so far, if it was asked for."""
        return self._digest.hexdigest() if self._digest else None

    def note(self, sentence: str) -> None:
        """Take a sentence about what the format cannot keep of the picture."""
        self.notes.append(sentence)

    def insert(self, place: int, data: bytes) -> None:
        """Put bytes between those of the encoder that is about to write, so many bytes after its start."""
        self._inserted = place, data

    def write(self, data: bytes) -> None:
        """Take bytes from an encoder. Without a file, all bytes come at once."""
        data = self._counted(data)
        if self._target is None:
            self.data = self.data + data if self.data else data
            return
        try:
            write_all(self._target, data)
        except (OSError, ValueError) as error:  # the latter if a caller who gave up waiting has closed it
            raise TargetError(f"The result cannot be written: {os_reason(error)}.") from error

    def save(self, image: pyvips.Image, saver: str, **options: object) -> None:
        """Encode with the named libvips saver."""
        if self._target is None:
            self.write(pyvips.Operation.call(f"{saver}save_buffer", image, **options))
            return
        target = pyvips.TargetCustom()
        target.on_write(self._take)
        try:
            pyvips.Operation.call(f"{saver}save_target", image, target, **options)
        except pyvips.Error:
            if self._failure is None:
                raise
            raise self._failure from self._failure.__cause__

    def _take(self, chunk: bytes) -> int:
        try:
            self.write(chunk)
        except TargetError as error:
            self._failure = error
            return -1
        return len(chunk)

    def _counted(self, data: bytes) -> bytes:
        """Return bytes with those that were to be inserted, after they are counted."""
        data = self._with_inserted(data)
        if self.size < _HEAD:
            self.head += data[: _HEAD - self.size]
        self.size += len(data)
        if self._digest is not None:
            self._digest.update(data)
        return data

    def _with_inserted(self, data: bytes) -> bytes:
        place, inserted = self._inserted
        cut = place - self.size
        if not inserted or cut > len(data):
            return data
        self._inserted = 0, b""
        return b"".join((data[:cut], inserted, data[cut:]))
