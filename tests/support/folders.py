"""Folders that nobody can write to, and folders in which others write."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import requires


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Read all files in a folder, but for those that others delete meanwhile."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with suppress(FileNotFoundError):
                yield path, path.read_bytes()


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """Make a folder that cannot be written to; not even by root, for whom modes do not count."""
    folder.mkdir(parents=True)
    if os.geteuid():
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)
        return
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], capture_output=True).returncode:
        requires.missing("root is not allowed to mount a file system that is only read")
    yield folder
    subprocess.run(["umount", folder], check=True)
