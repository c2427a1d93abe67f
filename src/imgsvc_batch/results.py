"""Write results: into a folder beside the target's files, or as objects of a store."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets

from imgsvc_core import NameCollision, TargetError
from imgsvc_core.sources import open_filesystem, shown_url
from imgsvc_core.targets import put_object, sync, unwritable, writing_to


def check_path(path: str) -> None:
    """Raise `TargetError` if a result would leave the target."""
    if ".." in path.split("/"):
        raise TargetError(f"Target '{path}' cannot be written: it is not below the folder of the results.")


def stage(folder: str, data: bytes, *, synced: bool = False) -> str:
    """Write a result into the staging folder, if asked for as far as the disk, and return its path."""
    path = f"{folder}/{secrets.token_hex(8)}"
    try:
        with open(path, "wb") as file:
            file.write(data)
            if synced:
                sync(file)
    except OSError as error:
        remove(path)
        raise unwritable(path, error) from error
    return path


def sync_folder(folder: str) -> None:
    """Wait until all that was written is on the disk of a folder.

    A power failure would otherwise empty results that the manifest has as done. The disk is asked once, as
    waiting for each file would take longer than making it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unwritable(folder, error) from error


def write_object(target: str, path: str, data: bytes, media_type: str, *, replace: bool) -> bool:
    """Write a result to a store. Return False if an object with the same content is there already.

    Raises:
        NameCollision: another object has this name, and must not be replaced.
        MissingDependency: the store needs a package that is not installed.
        TargetError: the store refuses it.
    """
    url = f"{target.rstrip('/')}/{path}"
    with writing_to(url):
        fs, place = open_filesystem(url)
        if not replace and fs.exists(place):
            if fs.size(place) == len(data) and fs.cat_file(place) == data:
                return False
            raise taken(shown_url(url))
        if not put_object(fs, place, data, media_type):
            folder = place.rpartition("/")[0]
            fs.makedirs(folder, exist_ok=True)
            unfinished = f"{folder}/.imgsvc-batch-{secrets.token_hex(8)}"
            fs.pipe_file(unfinished, data)
            fs.mv(unfinished, place)
    return True


def remove_object(target: str, path: str) -> None:
    """Remove an object if the store allows it."""
    with contextlib.suppress(Exception):
        fs, place = open_filesystem(f"{target.rstrip('/')}/{path}")
        fs.rm_file(place)


def move(staged: str, path: str) -> None:
    """Move a result to its place, in one step."""
    try:
        try:
            os.replace(staged, path)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(staged, path)
    except OSError as error:
        raise unwritable(path, error) from error


def remove(path: str) -> None:
    """Remove a file. It stays if it cannot be removed, for example on a disk that became read-only."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def taken(place: str) -> NameCollision:
    """Return the error for a place with a file or object of somebody else."""
    return NameCollision(
        f"Target '{place}' exists already, and is not from this input: use another target, a template that "
        "tells results apart, or overwrite."
    )
