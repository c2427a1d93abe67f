"""Keep what libraries print off standard error, which is for the command's own messages."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

from imgsvc_core._runtime.logs import silence

_STDERR = 2


@contextlib.contextmanager
def library_output_hidden() -> Iterator[None]:
    """Hide logs, warnings and messages of libraries in the block. Errors that matter are raised as well."""
    silence()
    with contextlib.ExitStack() as stack:
        if not sys.warnoptions:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        if _has_own_descriptor():
            stack.enter_context(_descriptor_hidden())
        yield


def _has_own_descriptor() -> bool:
    try:
        return sys.stderr.fileno() == _STDERR
    except (OSError, ValueError, AttributeError):  # closed, or replaced
        return False


@contextlib.contextmanager
def _descriptor_hidden() -> Iterator[None]:
    """Redirect the descriptor that libraries in C such as libtiff write to; Python's stderr keeps working."""
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
