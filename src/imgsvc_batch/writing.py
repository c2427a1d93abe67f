"""Putting results where they belong: whole or not at all, and never in the place of anything else."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from imgsvc_core.errors import NameCollision, TargetError
from imgsvc_core.sources import is_url
from imgsvc_core.urls import reason_of, shown_url

_MARK = "imgsvc-batch"

# Stores in which objects appear whole; how to tell them a media type, where the name does not, and whose an
# object is, should nobody live to write that down.
_OBJECT_STORES: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "s3": lambda media_type, mark: {"ContentType": media_type, "Metadata": {_MARK: mark}},
    "gs": lambda media_type, mark: {"content_type": media_type, "metadata": {_MARK: mark}},
    "az": lambda media_type, mark: {"content_settings": {"content_type": media_type}},
    "oss": lambda media_type, mark: {},
    "memory": lambda media_type, mark: {},
}
_MARKS: dict[str, Callable[[Any, str], str | None]] = {
    "s3": lambda fs, path: fs.metadata(path, refresh=True).get(_MARK),
    "gs": lambda fs, path: (fs.info(path).get("metadata") or {}).get(_MARK),
}
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


def write(
    target: str, path: str, data: bytes, media_type: str, *, location: str, token: str, replace: bool
) -> bool:
    """Write a result; whether it was not there already.

    Args:
        target: a folder or an fsspec URL of one.
        path: the path of the result below it, which `check_path` lets pass.
        data: the result.
        media_type: what stores are to say that it is.
        location: where the input is that it is from.
        token: names the folder of what is under way.
        replace: whether it may take the place of something else.

    Raises:
        NameCollision: something else is there already.
        TargetError: it cannot be written.
    """
    if is_url(target):
        mark = f"{token}-{_digest(location, path)}"
        return _put(f"{target.rstrip('/')}/{path}", data, media_type, mark, replace=replace)
    under_way, claim = _under_way(target, token), _claim(target, token, location, path)
    return _place(os.path.join(target, path), data, under_way, claim, replace=replace)


def check_path(target: str, path: str, reserved: Container[str]) -> None:
    """Raise `TargetError` where no result may ever be: outside the target, and where the manifest is."""
    if ".." in path.split("/"):
        raise TargetError(f"Target '{path}' cannot be written: it is not below the folder of the results.")
    folder, name = os.path.split(f"{target}/{path}".removeprefix("local://"))
    if not is_url(folder) and os.path.join(os.path.realpath(folder), name) in reserved:
        raise NameCollision(
            f"Target '{path}' is a file of the batch's manifest: use a template that gives another name, or "
            "another --manifest."
        )


def remove(target: str, path: str) -> None:
    """Delete a result, as far as that is possible."""
    with contextlib.suppress(Exception):
        if is_url(target):
            fs, place = _opened(f"{target.rstrip('/')}/{path}")
            fs.rm_file(place)
        else:
            os.unlink(os.path.join(target, path))


def release(target: str, path: str, *, location: str, token: str) -> None:
    """The manifest knows now from which input a result is, or the result is no more."""
    if not is_url(target):
        _delete(_claim(target, token, location, path))


def is_claimed(target: str, path: str, *, location: str, token: str) -> bool:
    """Whether a result in a folder is of an input though no manifest knows it, as its batch was killed."""
    return _is_link(os.path.join(target, path), _claim(target, token, location, path))


def clear_unfinished(target: str, token: str, *, claims: bool) -> None:
    """Delete what was never completed, and where nothing is left to do, ``claims`` as well."""
    if is_url(target):
        return
    under_way = _under_way(target, token)
    if claims:
        shutil.rmtree(under_way, ignore_errors=True)
        return
    for left in Path(under_way).glob(f"{_UNFINISHED}*"):
        _delete(str(left))


_UNFINISHED, _CLAIMED = "unfinished-", "claimed-"


# Text rather than `Path`, which takes longer than what the system does with a small result.


def _under_way(target: str, token: str) -> str:
    return os.path.join(target, f".imgsvc-batch-{token}")


def _claim(target: str, token: str, location: str, path: str) -> str:
    """A second link to a result: whose it is, should nobody live to write that down."""
    return f"{_under_way(target, token)}/{_CLAIMED}{_digest(location, path)}"


def _digest(location: str, path: str) -> str:
    return hashlib.sha256(f"{location}\0{path}".encode()).hexdigest()[:16]


def _place(path: str, data: bytes, under_way: str, claim: str, *, replace: bool) -> bool:
    beside = f"{under_way}/{_UNFINISHED}{secrets.token_hex(8)}"
    try:
        try:
            _in_folder(under_way, lambda: _write_file(beside, data))
            _in_folder(os.path.dirname(path), lambda: _move(beside, path, claim, replace=replace))
        except BaseException:
            _delete(beside)
            raise
    except FileExistsError as error:
        if os.path.isfile(path) and Path(path).read_bytes() == data:  # written by a worker that was lost
            return False
        raise _taken(path) from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TargetError(f"Target '{path}' cannot be written: {reason}.") from error
    return True


def _in_folder(folder: str, action: Callable[[], object]) -> None:
    """Do it; where the folder is missing, after making it."""
    try:
        action()
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)
        action()


def _write_file(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _delete(path: str) -> None:
    """Delete a file, as far as that is possible: a disk may be read-only by now."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _is_link(path: str, claim: str) -> bool:
    try:
        return os.path.samefile(path, claim)
    except OSError:
        return False


def _move(beside: str, path: str, claim: str, *, replace: bool) -> None:
    if replace:
        with contextlib.suppress(OSError):  # without hard links there are no claims
            _delete(claim)
            os.link(beside, claim)
        try:
            os.replace(beside, path)
        except OSError:
            _delete(claim)
            raise
        return
    try:
        os.link(beside, path)
        os.replace(beside, claim)
    except FileExistsError:
        if not _is_link(path, claim):
            raise
        os.replace(beside, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS or os.path.exists(path):
            raise
        os.replace(beside, path)


def _put(url: str, data: bytes, media_type: str, mark: str, *, replace: bool) -> bool:
    try:
        fs, path = _opened(url)
        protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
        store = next(iter(protocols & _OBJECT_STORES.keys()), None)
        if not replace and fs.exists(path):
            if fs.size(path) == len(data) and fs.cat_file(path) == data:
                return False
            if store not in _MARKS or _MARKS[store](fs, path) != mark:
                raise _taken(shown_url(url))
        if store is not None:
            settings = _OBJECT_STORES[store](media_type, mark)
            fs.pipe_file(path, data, **settings)  # a bucket that is missing is a mistake, and is not made
        else:
            beside = f"{path.rpartition('/')[0]}/.imgsvc-batch-{secrets.token_hex(8)}"
            _with_folder(fs, path, lambda: fs.pipe_file(beside, data))
            fs.mv(beside, path)
    except NameCollision:
        raise
    except ImportError as error:
        raise TargetError(
            f"Target '{shown_url(url)}' needs a package that is not installed: {error}."
        ) from error
    except Exception as error:  # every store has errors of its own
        raise TargetError(f"Target '{shown_url(url)}' cannot be written: {reason_of(error, url)}.") from error
    return True


def _with_folder(fs: Any, path: str, action: Callable[[], object]) -> None:
    """Do it, after making the folder where there has to be one."""
    try:
        action()
    except FileNotFoundError:
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        action()


def _opened(url: str) -> tuple[Any, str]:
    import fsspec

    fs, path = fsspec.core.url_to_fs(url)
    return fs, path


def named_alike(path: str) -> NameCollision:
    """What is told where another input of the same source has a result already."""
    return NameCollision(
        f"Its result '{path}' has the name of another input's: use a template that tells them apart."
    )


def _taken(place: str) -> NameCollision:
    return NameCollision(
        f"Target '{place}' exists already, and is not from this input: use another target, a template that "
        "tells results apart, or --overwrite."
    )
