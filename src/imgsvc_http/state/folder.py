"""The state folder: private, and used by one service at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from imgsvc_core.errors import Problem, SpecError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(folder: Path) -> None:
    """Make the folder if it does not exist, and deny other users any access to its contents.

    If no other user could enter the folder before, its contents are private already. Then only the folder's
    own mode is checked.

    Raises:
        SpecError: no files can be made in the folder, or its modes cannot be changed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_mode & _OTHERS:
            _restrict(folder)
            for parent, folders, files in os.walk(folder):
                for name in (*folders, *files):
                    _restrict(Path(parent, name))
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise _refused(folder, "a folder in which files can be made", str(error.strerror)) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other services from using the folder during the block. The system unlocks it if the process dies.

    The folder itself is locked, because a file in it may be deleted. The file ``service.pid`` only tells
    people which process uses the folder.

    Raises:
        SpecError: another service uses the folder, or its file system cannot lock folders.
    """
    pid_file = folder / "service.pid"
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            remedy = f"{_user(pid_file)} uses it: stop that one, or name another folder"
            raise _refused(folder, "a folder that no other service uses", remedy) from error
        except OSError as error:
            raise _refused(
                folder, "a folder that can be locked", f"{error.strerror}: use a local disk"
            ) from error
        pid_file.write_text(f"{os.getpid()}\n", encoding="ascii")
        yield
    finally:
        os.close(descriptor)


def _user(pid_file: Path) -> str:
    try:
        return f"process {int(pid_file.read_bytes()[:20])}"
    except (OSError, ValueError):
        return "another process"


def _restrict(path: Path) -> None:
    mode = path.lstat().st_mode
    if not stat.S_ISLNK(mode) and mode & _OTHERS:
        path.chmod(stat.S_IMODE(mode) & ~_OTHERS)


def _refused(folder: Path, expected: str, reason: str) -> SpecError:
    setting = "server.state_folder"
    return SpecError([Problem(setting, f"Setting '{setting}' must be {expected}, got '{folder}': {reason}")])
