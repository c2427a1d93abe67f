"""Standard input and output for pictures; a shell may have closed them."""

from __future__ import annotations

import sys
from typing import BinaryIO

from imgsvc_core.errors import SourceError, TargetError


def read_input() -> bytes:
    """All of standard input; `SourceError` where there is none."""
    if sys.stdin is None:
        raise SourceError("Standard input is closed; redirect it, or name a file instead of -.")
    return sys.stdin.buffer.read()


def output() -> BinaryIO:
    """Standard output for bytes; `TargetError` where there is none."""
    if sys.stdout is None:
        raise TargetError("Standard output is closed; redirect it, or name a file instead of -.")
    return sys.stdout.buffer
