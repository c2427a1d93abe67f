"""Undo the content codings of bytes, which the header ``Content-Encoding`` names, step by step.

A few bytes may decode to a thousand times as many. So each step gives about 64 KiB, and the bytes before and
after each coding are limited.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Protocol

from imgsvc_core._runtime.records import frozen

_STEP_BYTES = 1 << 16  # bytes into a decompressor, which copies the rest, and bytes out of it
_MOST_MEMBERS = 4096  # bgzip makes a member of each 64 KiB; members of a few bytes would take minutes
_MOST_CODINGS = 5  # the limit of curl
_ZSTD_WINDOW_LOG = 23  # 8 MiB, the largest that RFC 9659 allows
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
_DEFLATED, _GZIPPED = 8, 0xF  # the low half of the first byte, with the header of zlib and of gzip

_OTHER_CODINGS = frozenset({"compress", "x-compress", "dcb", "dcz", "exi", "pack200-gzip"})
"""Codings of IANA's registry that are not decoded."""


class InvalidCoding(Exception):
    """The bytes are not encoded as the header says. The text of the error tells the problem."""


class TooManyBytes(Exception):
    """The bytes before, between or after the codings exceed the limit."""


class _Decompressor(Protocol):
    """The interface of decompressors in Python's ``bz2``, ``lzma`` and ``compression.zstd``."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Decoding:
    """Undoes the codings of one body.

    Unknown codings are ignored, as browsers do: uploads to buckets use ``utf-8``, ``base64`` or
    ``aws-chunked`` for plain bytes.

    Args:
        header: the value of ``Content-Encoding``; several lines are joined by commas.
        limit_bytes: the most bytes before, between and after the codings.

    Raises:
        InvalidCoding: a coding cannot be undone.
    """

    def __init__(self, header: str, limit_bytes: int | None) -> None:
        names = [name.strip().lower() for name in header.split(",")]
        if unknown := _OTHER_CODINGS.intersection(names):
            raise InvalidCoding(f"is encoded as {min(unknown)}, which cannot be decoded")
        codings = [_CODINGS[name] for name in reversed(names) if name in _CODINGS]
        if len(codings) > _MOST_CODINGS:
            raise InvalidCoding(f"is encoded more than {_MOST_CODINGS} times")
        self._layers = [_Layer(coding, limit_bytes) for coding in codings]
        self._limit = limit_bytes
        self._received = 0

    @property
    def is_plain(self) -> bool:
        """Return True if no coding is to be undone."""
        return not self._layers

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes, step by step. A step may yield nothing.

        Raises:
            InvalidCoding: the bytes are not encoded in this way.
            TooManyBytes: the bytes exceed the limit.
        """
        self._received += len(data)
        if self._limit is not None and self._received > self._limit:
            raise TooManyBytes
        pieces: Iterable[bytes] = (data,)
        for layer in self._layers:
            pieces = layer.decoded(pieces)
        yield from pieces

    def finish(self) -> None:
        """Raise `InvalidCoding` if a coding is not complete."""
        for layer in self._layers:
            layer.finish()

    def decode(self, data: bytes) -> bytes:
        """Return the decoded bytes of a whole body.

        Raises:
            InvalidCoding, TooManyBytes: as in `feed`.
        """
        decoded = b"".join(self.feed(data))
        self.finish()
        return decoded


@frozen
class _Coding:
    """A content coding.

    Args:
        open: makes a decompressor, by the first byte of the body.
        has_members: whether one compressed member, or frame, may follow another.
        padding: bytes that may stand between members and after them.
    """

    open: Callable[[int], _Decompressor]
    has_members: bool = False
    padding: bytes = b""


class _Layer:
    """One coding of a body."""

    def __init__(self, coding: _Coding, limit: int | None) -> None:
        self._coding = coding
        self._limit = limit
        self._decompressor: _Decompressor | None = None
        self._members = 0
        self._decoded = 0

    def decoded(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the decoded bytes of encoded ones."""
        for piece in pieces:
            yield b""  # a step of the layer before
            for start in range(0, len(piece), _STEP_BYTES):
                for step in self._steps(piece[start : start + _STEP_BYTES]):
                    self._decoded += len(step)
                    if self._limit is not None and self._decoded > self._limit:
                        raise TooManyBytes
                    yield step

    def finish(self) -> None:
        """Raise `InvalidCoding` if the coding is not complete."""
        if self._decompressor is not None and not self._decompressor.eof:
            raise InvalidCoding("ended before it was complete")

    def _steps(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._decompressor is None or self._decompressor.eof:
                data = self._next_member(data)
                if not data:
                    return
            assert self._decompressor is not None
            step = self._step(self._decompressor, data)
            yield step
            while not self._decompressor.eof and (
                len(step) >= _STEP_BYTES or not self._decompressor.needs_input
            ):
                step = self._step(self._decompressor, b"")
                yield step
            data = self._decompressor.unused_data

    def _next_member(self, data: bytes) -> bytes:
        """Begin with the next member. Return the data from its first byte on."""
        if self._decompressor is not None:
            data = data.lstrip(self._coding.padding)
            if data and not self._coding.has_members:
                raise InvalidCoding("goes on after the end of its Content-Encoding")
        if data:
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise InvalidCoding(f"has more than {_MOST_MEMBERS:,} compressed members")
            self._decompressor = self._coding.open(data[0])
        return data

    def _step(self, decompressor: _Decompressor, data: bytes) -> bytes:
        try:
            return decompressor.decompress(data, _STEP_BYTES)
        except MemoryError:
            raise
        except Exception as error:  # each package has an error of its own, and is imported only if needed
            raise InvalidCoding("has a broken Content-Encoding") from error


class _Zlib:
    """A decompressor of gzip, zlib and bare deflate."""

    def __init__(self, window_bits: int) -> None:
        self._decompressor = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def needs_input(self) -> bool:
        return not self._decompressor.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._decompressor.decompress(self._decompressor.unconsumed_tail + data, max_length)


class _Brotli:
    """A decompressor of Brotli. The coding allows no bytes after its end."""

    unused_data = b""

    def __init__(self) -> None:
        self._decompressor: Any = _package("br", "brotli").Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._decompressor.is_finished())

    @property
    def needs_input(self) -> bool:
        return bool(self._decompressor.can_accept_more_data())

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return bytes(self._decompressor.process(data, output_buffer_limit=max_length))


def _open_zlib(first: int) -> _Decompressor:
    return _Zlib(zlib.MAX_WBITS | 32)  # the header of gzip or of zlib


def _open_deflate(first: int) -> _Decompressor:
    """By the standard, deflate has a header of zlib. Often it has none, and sometimes that of gzip."""
    has_header = first & 0xF in (_DEFLATED, _GZIPPED)
    return _open_zlib(first) if has_header else _Zlib(-zlib.MAX_WBITS)


def _open_zstd(first: int) -> _Decompressor:
    zstd = _package("zstd", _ZSTD)
    limits = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
    opened: _Decompressor = zstd.ZstdDecompressor(options=limits)
    return opened


def _package(extra: str, module: str) -> Any:
    """Import a module that may not be installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InvalidCoding(
            f"is encoded as {extra}, which needs a package that is not installed: install it with "
            f"pip install 'imgsvc[{extra}]'"
        ) from error


_GZIP = _Coding(_open_zlib, has_members=True, padding=b"\0")
_CODINGS = {
    "gzip": _GZIP,
    "x-gzip": _GZIP,
    "deflate": _Coding(_open_deflate),
    "br": _Coding(lambda _: _Brotli()),
    "zstd": _Coding(_open_zstd, has_members=True),
}
