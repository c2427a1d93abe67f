"""A disk whose power can fail."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_BYTES = 1 << 26


@contextlib.contextmanager
def failing_disk(folder: Path) -> Iterator[tuple[Path, Callable[[], Path]]]:
    """Give the folder of a disk, and a function that returns the folder of what its power failure leaves.

    That is what the file of the disk holds at that moment. What waits in the memory of the system is lost.
    """
    disk, there = folder / "disk", folder / "mounted"
    left, after = folder / "left", folder / "after"
    for place in (there, after):
        place.mkdir()
    with disk.open("wb") as file:
        file.truncate(_BYTES)

    def lose() -> Path:
        _call("cp", "--sparse=always", disk, left)
        _call("mount", "-o", "loop", left, after)
        unmounting.callback(_call, "umount", "--lazy", after)
        return after

    with contextlib.ExitStack() as unmounting:
        try:
            _call("mkfs.ext4", "-q", disk)
            _call("mount", "-o", "loop", disk, there)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no disk can be made here: {error}")
        unmounting.callback(_call, "umount", "--lazy", there)
        yield there, lose


def _call(*command: str | Path) -> None:
    subprocess.run(command, check=True, stderr=subprocess.PIPE)
