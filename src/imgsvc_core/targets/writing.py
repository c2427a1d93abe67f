"""Everything that a result can be written to, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol, TypeAlias, TypeGuard, cast

from imgsvc_core.errors import TargetError, os_reason
from imgsvc_core.sources.filesystems import open_filesystem
from imgsvc_core.sources.receiving import is_url
from imgsvc_core.sources.url_messages import missing_package, reason_of, shown_url


class Writable(Protocol):
    """A binary file object."""

    def write(self, data: Any, /) -> Any:
        """Write bytes."""


Target: TypeAlias = str | os.PathLike[str] | Writable
"""A path, an fsspec URL, or a binary file object."""

_unfinished: set[Path] = set()
_beginning = threading.Lock()


def suffix_of(target: Target | None) -> str:
    """Return the file suffix of a path or URL, with its dot."""
    return PurePosixPath(name_of(target)).suffix


def name_of(target: Target | None) -> str:
    """Return the file name of a path or URL."""
    if is_url(target):
        return PurePosixPath(target.partition("?")[0]).name
    return Path(target).name if isinstance(target, str | os.PathLike) else ""


def check_target(target: Target | None, *, required: bool = False) -> None:
    """Raise `TargetError` for what cannot be a target, before there is anything to write."""
    if target == "" or (isinstance(target, str) and target.endswith("/")):
        raise TargetError(f"Target must name a file, such as 'pictures/small.webp', got '{target}'.")
    if isinstance(target, str | os.PathLike) or (target is None and not required):
        return
    if not hasattr(target, "write") or isinstance(target, io.TextIOBase):
        kind = type(target).__name__
        raise TargetError(f"Target must be a path, a URL or a binary file object, got {kind}.")
    if getattr(target, "closed", False):
        raise TargetError("Target file must be open, got one that is closed.")


def is_file(target: Target | None) -> TypeGuard[str | os.PathLike[str]]:
    """Return True if the target is the path of a regular file, existing or not: no device, pipe or URL."""
    if is_url(target) or not isinstance(target, str | os.PathLike):
        return False
    try:
        return stat.S_ISREG(os.stat(target).st_mode)
    except (OSError, ValueError):
        return True


_OBJECT_STORES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "s3": lambda media_type: {"ContentType": media_type},
    "gs": lambda media_type: {"content_type": media_type},
    "az": lambda media_type: {"content_settings": {"content_type": media_type}},
    "oss": lambda media_type: {},
    "memory": lambda media_type: {},
}
"""The protocols of fsspec whose objects appear whole, and how each store takes a media type."""


@contextlib.contextmanager
def open_target(
    target: Target, media_type: str = "application/octet-stream", *, stamp: str | None = None
) -> Iterator[BinaryIO]:
    """Open a binary file that becomes the target when the block succeeds, and leaves nothing otherwise.

    Object stores keep ``media_type`` with the object. A file that has a ``stamp`` of `stamp_in_place` is left
    alone if its bytes do not change.

    Raises:
        TargetError: the target cannot be written, or has another stamp by now.
    """
    if is_url(target):
        with _uploading(target, media_type) as file:
            yield file
    elif isinstance(target, str | os.PathLike):
        with _replacing(Path(target), stamp) if is_file(target) else _opened(Path(target)) as file:
            yield file
    else:
        try:
            yield cast("BinaryIO", target)
        except (OSError, ValueError) as error:  # the latter if it was closed meanwhile
            raise TargetError(f"Target file cannot be written: {os_reason(error)}.") from error


@contextlib.contextmanager
def _replacing(path: Path, stamp: str | None) -> Iterator[BinaryIO]:
    """Open a file beside the target that replaces it in one step; see `replace_file`. Links are followed."""
    try:
        path = Path(os.path.realpath(path))
        beside, file = _create_beside(path)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error
    try:
        with file:
            yield file
            if stamp is not None:
                sync(file)
        if stamp is not None:
            import filecmp

            if filecmp.cmp(beside, path, shallow=False):
                return
        replace_file(path, beside, stamp=stamp)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        beside.unlink(missing_ok=True)
        _unfinished.discard(beside)


def _create_beside(path: Path) -> tuple[Path, BinaryIO]:
    """Create a hidden file beside another one. Only its owner can read it if the other one exists."""
    beside = path.with_name(f".imgsvc-{os.urandom(8).hex()}.part")
    mode = 0o600 if path.exists() else 0o666
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with _beginning:
        file = os.fdopen(os.open(beside, flags, mode), "wb")
        _unfinished.add(beside)
    return beside, file


def replace_file(path: Path, finished: Path, *, stamp: str | None = None) -> None:
    """Put a finished file in the place of ``path`` in one step. ``path`` may be missing, but is no link.

    The mode and the extended attributes of ``path`` are kept, and owner and group as far as that is allowed.

    Args:
        path: the file to replace.
        finished: the file that takes its place. It may be on another device.
        stamp: what `stamp_of` told of ``path`` before it was read.

    Raises:
        TargetError: ``path`` has another stamp by now, because somebody else has changed it.
        OSError: ``path`` cannot be replaced, or is read-only.
    """
    if not path.exists():
        os.replace(finished, path)
        return
    found = path.stat()
    if stamp is not None and stamp_of(found) != stamp:
        raise changed_meanwhile(str(path))
    # Replacing it asks for no more than a writable folder.
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    _copy_attributes(path, found, finished)
    try:
        os.replace(finished, path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        import shutil  # with three compressors

        beside, file = _create_beside(path)
        try:
            with file, finished.open("rb") as data:
                shutil.copyfileobj(data, file)
                sync(file)
            _copy_attributes(path, found, beside)
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)
            _unfinished.discard(beside)
        finished.unlink(missing_ok=True)


def stamp_of(found: os.stat_result) -> str:
    """Return a text that changes with the content of a file."""
    return f"{found.st_size}-{found.st_mtime_ns}"


def stamp_in_place(source: object, target: Target) -> str | None:
    """Return the stamp of a file that is both source and target, or None for others."""
    try:
        if isinstance(source, str | os.PathLike) and is_file(target) and os.path.samefile(source, target):
            return stamp_of(os.stat(target))
    except (OSError, ValueError):  # such as of a URL
        pass
    return None


def sync(file: BinaryIO) -> None:
    """Wait until a file is on the disk, so that a power failure cannot leave its name without content."""
    file.flush()
    os.fsync(file.fileno())


def changed_meanwhile(place: str) -> TargetError:
    """Return the error for a file or object that changed while its result was made."""
    return TargetError(
        f"Target '{place}' has changed while it was processed, so it stays as it is: process it again."
    )


def _copy_attributes(path: Path, found: os.stat_result, copy: Path) -> None:
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # a file system without them
            for name in os.listxattr(path):
                with contextlib.suppress(OSError):
                    os.setxattr(copy, name, os.getxattr(path, name))
    if hasattr(os, "chown"):
        for owner in ((-1, found.st_gid), (found.st_uid, -1)):
            with contextlib.suppress(PermissionError):
                os.chown(copy, *owner)
    copy.chmod(found.st_mode & 0o7777)  # afterwards, because a new owner takes bits away


def remove_unfinished() -> None:
    """Remove the files of unfinished results, and block new ones, in a process that ends at once.

    Files that cannot be removed stay, and the process ends all the same.
    """
    _beginning.acquire()
    for path in tuple(_unfinished):
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a device or pipe, which is written to and not replaced."""
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        raise unwritable(path, error) from error


@contextlib.contextmanager
def _uploading(url: str, media_type: str) -> Iterator[BinaryIO]:
    """Collect the bytes first, because object stores write an unfinished object when it is closed."""
    buffer = io.BytesIO()
    yield buffer
    with writing_to(url):
        fs, path = open_filesystem(url)
        if not put_object(fs, path, buffer.getvalue(), media_type):
            with fs.open(path, "wb") as file:
                file.write(buffer.getbuffer())


@contextlib.contextmanager
def writing_to(url: str) -> Iterator[None]:
    """Raise whatever fails in the block as the error of a target, or of a package that is not installed."""
    try:
        yield
    except TargetError:
        raise
    except ImportError as error:
        raise missing_package("Target", url, error) from error
    except Exception as error:  # packages of stores raise anything
        raise TargetError(f"Target '{shown_url(url)}' cannot be written: {reason_of(error, url)}.") from error


def put_object(fs: Any, path: str, data: bytes, media_type: str, **headers: Any) -> bool:
    """Write an object of a store. Return False for file systems of fsspec that are no stores."""
    store = store_of(fs)
    if store is not None:
        fs.pipe_file(path, data, **{**headers, **_OBJECT_STORES[store](media_type)})
    return store is not None


def store_of(fs: Any) -> str | None:
    """Return the protocol of a file system whose objects appear whole, or None for any other."""
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    return next(iter(protocols & _OBJECT_STORES.keys()), None)


def unwritable(path: str | Path, error: OSError | ValueError) -> TargetError:
    """Return the error for a path that cannot be written."""
    return TargetError(f"Target '{path}' cannot be written: {os_reason(error)}.")
