"""Decode JPEG 2000 with Pillow, as a program that can be killed while it does.

``python jp2_process.py PARENT REDUCE WIDTH HEIGHT PATH...`` reads a file from standard input, decodes it at
WIDTH x HEIGHT, which is its size halved REDUCE times, and writes the pixels to standard output. If it cannot,
it writes the reason and exits with `FAILED`. It imports Pillow alone, from PATH, so that it starts quickly,
and dies with the process PARENT.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from pathlib import Path

FAILED = 100
"""Unlike any exit code of a program that is not this one."""

_ROWS = 256  # that are copied at a time
_PRIVATE_NAMES = Path(__file__).parents[2] / "_runtime" / "private_names.py"


def main(parent: int, reduce: int, width: int, height: int) -> int:
    """Decode from standard input to standard output. Return the exit code."""
    from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile

    pr_set_pdeathsig = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        return 0
    read_resolution = runpy.run_path(str(_PRIVATE_NAMES))["read_resolution"]  # without the package around it
    with open(0, "rb") as source, open(1, "wb") as target:
        try:
            picture = Jpeg2KImageFile(source)
            read_resolution(picture, (width, height), reduce)
            picture.load()
        except Exception as error:  # packages meet damage as any kind of exception
            memory = isinstance(error, MemoryError)
            target.write(("out of memory" if memory else str(error) or type(error).__name__).encode())
            return FAILED
        for top in range(0, height, _ROWS):
            target.write(picture.crop((0, top, width, min(height, top + _ROWS))).tobytes())
    return 0


if __name__ == "__main__":
    sys.path[:] = sys.argv[5:]
    sys.exit(main(*map(int, sys.argv[1:5])))
