"""Read a source of any type: a path, a URL, bytes, a file object or pixels."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

from imgsvc_core._runtime.deadline import Deadline
from imgsvc_core.errors import ImgsvcError, SourceUnreachable, os_reason
from imgsvc_core.formats.bytesource import ByteSource
from imgsvc_core.limits import Limits, check_bytes
from imgsvc_core.sources.filesystems import open_filesystem, reading
from imgsvc_core.sources.url_messages import missing_package, reason_of, shown_url

if TYPE_CHECKING:
    import numpy.typing as npt
    import PIL.Image
    from typing_extensions import Buffer


class Readable(Protocol):
    """A binary file object."""

    def read(self, size: int, /) -> Any:
        """Return at most that many bytes, or no bytes at the end."""


class HoldsBytes(Protocol):
    """A result, or anything else that holds an encoded image."""

    @property
    def data(self) -> bytes:
        """The encoded image."""


class HoldsPixels(Protocol):
    """An array of NumPy, or an image of Pillow or pyvips."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The pixels, by NumPy's protocol."""


if TYPE_CHECKING:
    _Pixels: TypeAlias = npt.NDArray[Any] | PIL.Image.Image  # and pyvips.Image, whose package has no types
    Source: TypeAlias = str | os.PathLike[str] | Buffer | Readable | HoldsBytes | _Pixels | ByteSource
else:
    Source = str | os.PathLike[str] | bytes | bytearray | memoryview | Readable | HoldsBytes | HoldsPixels
"""A path, an fsspec URL, encoded bytes, a binary file, a result, or pixels of NumPy, Pillow or pyvips."""

_CHUNK = 1 << 20


def is_url(location: object) -> TypeGuard[str]:
    """Return True if a location is an fsspec URL rather than a path."""
    return isinstance(location, str) and ("://" in location or location.startswith("memory:"))


def open_bytes(
    source: Source, limits: Limits, *, name: str | None = None, member: object = None
) -> ByteSource:
    """Return the encoded bytes of a path, bytes, a file object or a URL, within the limits.

    ``member`` is what `list_archive` told of the source.

    Raises:
        TypeError: the source is of a type that cannot be read.
        SourceUnreachable: the source cannot be read.
        EmptySource: there are no bytes.
        SourceTooLarge: there are too many.
    """
    if isinstance(source, ByteSource):
        opened = source
    elif _is_buffer(source):
        opened = ByteSource(_in_order(source), name=name or "")
    elif is_url(source):
        last = shown_url(source).rstrip("/").rpartition("/")[2]
        opened = ByteSource(_fetch(source, limits, member), name=name or last)
    elif isinstance(source, str | os.PathLike):
        opened = ByteSource(_at(source, limits), name=name or Path(source).name)
    elif hasattr(source, "read"):
        opened = ByteSource(_read(source, limits), name=name or _name_of(source))
    elif isinstance(data := getattr(source, "data", None), bytes):
        opened = ByteSource(data, name=name or "")
    else:
        raise TypeError(
            "Source must be a path, a URL, bytes, a binary file object, a result with data, a numpy array, "
            f"a Pillow image or a pyvips image, got {type(source).__name__}."
        )
    check_bytes(opened.size, limits)
    return opened


def received(source: Source, limits: Limits, deadline: Deadline, *, name: str | None = None) -> Source:
    """Return the source, with the bytes of a file object in its place.

    An open file may work only in the thread of its owner, the caller. So this function checks the time
    between two reads.

    Raises:
        TimeLimitExceeded: the time is up.
        SourceUnreachable, EmptySource, SourceTooLarge: the bytes of a file object cannot be used.
    """
    if isinstance(source, ByteSource) or not hasattr(source, "read"):
        return source
    return open_bytes(_read(source, limits, deadline), limits, name=name or _name_of(source))


def is_at_hand(source: Source) -> bool:
    """Return True for bytes and regular files: URLs, devices and pipes may keep a reader waiting."""
    if isinstance(source, bytes | bytearray | memoryview):
        return True
    if not isinstance(source, str | os.PathLike) or is_url(source):
        return False
    try:
        return Path(source).is_file()
    except OSError:
        return False


def _is_buffer(value: object) -> TypeGuard[Buffer]:
    return isinstance(value, bytes | bytearray | memoryview) or hasattr(type(value), "__buffer__")


def _in_order(source: Buffer) -> Buffer:
    """Return the bytes of a buffer. It is copied only if it is not contiguous."""
    view = memoryview(source)
    return view if view.c_contiguous else view.tobytes()


def _at(source: str | os.PathLike[str], limits: Limits) -> Path | bytes:
    """Return the path of a file, or the bytes of a device or a pipe."""
    path = Path(source)
    if str(source) == "":
        raise SourceUnreachable("Source path must not be empty.")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            with path.open("rb") as file:
                return _read(file, limits)
    except (OSError, ValueError) as error:
        raise SourceUnreachable(f"Source '{path}' cannot be read: {os_reason(error)}.") from error
    return path


def _fetch(url: str, limits: Limits, member: object) -> bytes:
    from imgsvc_core.sources.objects import is_object_store

    with _translated(url):
        fs, path = open_filesystem(url)
        if is_object_store(fs):
            return _read_object(fs, path + url[len(url.rstrip("/")) :], limits)
        known = {} if member is None else {"member": member}
        with reading(fs), fs.open(path, "rb", **known) as file:
            return _read(file, limits)


def _read_object(fs: Any, path: str, limits: Limits) -> bytes:
    """Return the bytes of an object in a bucket, decoded, within the limits."""
    from imgsvc_core.sources.content_coding import Decoding, InvalidCoding, TooManyBytes
    from imgsvc_core.sources.objects import object_info, read_object

    info = object_info(fs, path)
    size: int = info["size"]
    check_bytes(size, limits)
    try:
        return Decoding(info["encoding"], limits.source_bytes).decode(read_object(fs, path, 0, size))
    except InvalidCoding as error:
        raise SourceUnreachable(f"Source '{shown_url(path)}' {error}.") from error
    except TooManyBytes:
        assert limits.source_bytes is not None
        check_bytes(limits.source_bytes + 1, limits)
        raise


@contextlib.contextmanager
def _translated(url: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise missing_package("Source", url, error) from error
    except ImgsvcError:
        raise
    except Exception as error:  # packages of stores raise anything
        raise SourceUnreachable(
            f"Source '{shown_url(url)}' cannot be read: {reason_of(error, url)}."
        ) from error


def _read(file: Any, limits: Limits, deadline: Deadline | None = None) -> bytes:
    """Return all bytes of a file object, within the limits."""
    chunks: list[bytes] = []
    size = 0
    while chunk := _chunk(file):
        if not _is_buffer(chunk):
            kind = "text" if isinstance(chunk, str) else type(chunk).__name__
            raise SourceUnreachable(f"Source file must be opened in binary mode, got {kind}.")
        chunk = bytes(chunk)  # the file may fill the same buffer again
        chunks.append(chunk)
        size += len(chunk)
        check_bytes(size, limits)
        if deadline is not None:
            deadline.check()
    return b"".join(chunks)


def _chunk(file: Any) -> Any:
    try:
        chunk = file.read(_CHUNK)
    except (OSError, ValueError) as error:
        raise SourceUnreachable(f"Source file cannot be read: {os_reason(error)}.") from error
    if chunk is None:  # a raw file that does not block may have more later
        raise SourceUnreachable("Source file must wait for its bytes, got a non-blocking one.")
    return chunk


def _name_of(file: object) -> str:
    name = getattr(file, "name", "")
    return Path(shown_url(name)).name if isinstance(name, str) else ""
