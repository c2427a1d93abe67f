"""Standard error for the words of the command alone."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

from imgsvc_core.logs import silence

_STDERR = 2


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """In the block, what libraries write to nobody in particular is unseen; what matters they also raise."""
    silence()
    with contextlib.ExitStack() as stack:
        if not sys.warnoptions:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        if _usual():
            stack.enter_context(_apart())
        yield


def _usual() -> bool:
    try:
        return sys.stderr.fileno() == _STDERR
    except (OSError, ValueError, AttributeError):  # it is closed, or somebody else's
        return False


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """Python's standard error with another number than the one that libraries in C, as libtiff, write to."""
    kept = os.dup(_STDERR)
    with (
        open(kept, "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors) as ours,
        open(os.devnull, "wb") as nowhere,
        contextlib.redirect_stderr(ours),
    ):
        os.dup2(nowhere.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
