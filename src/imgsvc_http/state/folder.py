"""The state folder: private, and used by one service at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from imgsvc_core.errors import SpecError, TargetError
from imgsvc_http.settings.problems import wrong_setting
from imgsvc_http.state.failures import is_disk_full

_LEAST_SCRATCH_BYTES = 1 << 16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_PRIVATE = "a folder that only its owner can access"
_UNSEARCHED = ("cache", "scratch")


def make_private(folder: Path) -> None:
    """Make the folder if it does not exist, and deny other users any access to it.

    Raises:
        SpecError: no files can be made in the folder, it is another user's, or its mode cannot be changed.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _restrict(folder, folder.resolve())
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise _refused(folder, "a folder in which files can be made", str(error.strerror)) from error


def check_scratch(folder: Path) -> None:
    """Make the folder for temporary files if it does not exist.

    Raises:
        SpecError: no files can be made in the folder.
        TargetError: its disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(_LEAST_SCRATCH_BYTES))
    except OSError as error:
        if is_disk_full(error):
            raise TargetError(
                f"The disk of '{folder}', for temporary files, is full: make room on it."
            ) from error
        expected, reason = "a folder in which files can be made", str(error.strerror)
        raise _refused(folder, expected, reason, setting="server.scratch_folder") from error


def make_contents_private(folder: Path) -> None:
    """Deny other users any access to everything in the folder, whoever made it.

    Links are not followed, because what they lead to may not be the service's own. They have to lead to
    something private. The folders of the cache and of temporary files are made private themselves. What is in
    them is not looked at: the first may hold too many files, the second links to fonts.

    Raises:
        SpecError: something is another user's, its mode cannot be changed, or others can access the target
            of a link.
    """
    links = []
    for parent, folders, files in os.walk(folder):
        names = (*folders, *files)
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in _UNSEARCHED]
        for name in names:
            path = Path(parent, name)
            with contextlib.suppress(FileNotFoundError):  # a command may have used the database
                if path.is_symlink():
                    links.append(path)
                else:
                    _restrict(folder, path)
    for link in links:  # which may lead to something in the folder
        with contextlib.suppress(FileNotFoundError):
            if link.stat().st_mode & _OTHERS:
                target = link.resolve()
                remedy = f"link '{link}' leads to '{target}', which others can access: chmod go= '{target}'"
                raise _refused(folder, _PRIVATE, remedy)


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


def _restrict(folder: Path, path: Path) -> None:
    found = path.lstat()
    if found.st_uid not in (0, os.geteuid()):
        raise _refused(folder, _PRIVATE, f"'{path}' belongs to user {found.st_uid}: change its owner")
    if found.st_mode & _OTHERS:
        try:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
        except PermissionError as error:
            reason = f"others can access '{path}', and its mode cannot be changed ({error.strerror})"
            is_folder = path == folder.resolve()  # such as a volume that root has mounted
            remedy = "name a folder in it, which the service makes" if is_folder else "change its owner"
            raise _refused(folder, _PRIVATE, f"{reason}: {remedy}") from error


def _refused(folder: Path, expected: str, reason: str, *, setting: str = "server.state_folder") -> SpecError:
    return wrong_setting(setting, f"must be {expected}, got '{folder}': {reason}")
